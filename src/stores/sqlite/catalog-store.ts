/** Catalogs in SQLite: one row each, with the choices as one JSON text. */
import { CATALOG_FIELDS, fromFields, toFields } from '../catalog-record.ts';
import type { CatalogStore } from '../catalog-store.ts';
import type { EmbeddedDatabase } from './database.ts';

/** A catalog store over an open database. */
export function createSqliteCatalogStore(database: EmbeddedDatabase): CatalogStore {
  const one = 'FROM catalogs WHERE owner = ? AND id = ?';
  const select = `SELECT ${CATALOG_FIELDS.join(', ')} ${one}`;
  const selectExamples = `SELECT examples ${one}`;
  const selectStamp = `SELECT stamp ${one}`;
  const owners = 'SELECT DISTINCT owner FROM catalogs ORDER BY owner';
  const ids = 'SELECT id FROM catalogs WHERE owner = ? ORDER BY id';

  return {
    async create(owner, record, bounds, budget, examples = '') {
      const fields = { ...toFields(record), examples };
      const result = await database.write(budget, { kind: 'create_catalog', owner, id: record.id, bounds, fields });
      if (result === 'created') return { kind: 'created', stamp: fields.stamp };
      if (result === 'too_many') return { kind: 'full', by: 'catalogs' };
      return result === 'too_large' ? { kind: 'full', by: 'bytes' } : { kind: 'exists' };
    },
    read(owner, id, budget) {
      return database.read(budget, (prepare) => {
        const row = prepare(select).get(owner, id);
        return row === undefined ? undefined : fromFields(owner, id, row);
      });
    },
    stamp(owner, id, budget) {
      return database.read(budget, (prepare) => {
        const stamp = prepare(selectStamp).get(owner, id)?.stamp;
        return stamp === undefined ? undefined : String(stamp);
      });
    },
    async replace(owner, stamp, record, budget, examples) {
      const { id } = record;
      const order = { kind: 'replace_catalog', owner, id, stamp, fields: toFields(record), examples } as const;
      return (await database.write(budget, order)) === true;
    },
    examples(owner, id, budget) {
      return database.read(budget, (prepare) => String(prepare(selectExamples).get(owner, id)?.examples ?? ''));
    },
    async delete(owner, id, budget) {
      return (await database.write(budget, { kind: 'delete_catalog', owner, id })) === true;
    },
    list(owner, budget) {
      return database.read(budget, (prepare) =>
        prepare(ids)
          .all(owner)
          .map((row) => String(row.id)),
      );
    },
    owners(budget) {
      return database.read(budget, (prepare) =>
        prepare(owners)
          .all()
          .map((row) => String(row.owner)),
      );
    },
  };
}
