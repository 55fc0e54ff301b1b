/** Catalogs in SQLite: one row each, the choices as one JSON text. */
import { CATALOG_FIELDS, fromFields, toFields } from '../catalog-record.ts';
import type { CatalogStore } from '../catalog-store.ts';
import type { EmbeddedDatabase } from './database.ts';

/** A store over an open database. */
export function createSqliteCatalogStore({ connection, run, transact }: EmbeddedDatabase): CatalogStore {
  const one = 'FROM catalogs WHERE owner = ? AND id = ?';
  const select = connection.prepare(`SELECT ${CATALOG_FIELDS.join(', ')} ${one}`);
  const selectStamp = connection.prepare(`SELECT stamp ${one}`);
  const count = connection.prepare('SELECT count(*) AS count FROM catalogs WHERE owner = ?');
  const names = CATALOG_FIELDS.map((name) => `:${name}`).join(', ');
  const insert = connection.prepare(
    `INSERT INTO catalogs (owner, id, ${CATALOG_FIELDS.join(', ')}) VALUES (:owner, :id, ${names})`,
  );
  const remove = connection.prepare(`DELETE ${one}`);
  const ids = connection.prepare('SELECT id FROM catalogs WHERE owner = ? ORDER BY id');

  return {
    create(owner, record, cap, budget) {
      const fields = toFields(record);
      return transact(budget, () => {
        if (selectStamp.get(owner, record.id) !== undefined) return { kind: 'exists' };
        if (Number(count.get(owner)?.count) >= cap) return { kind: 'full' };
        insert.run({ owner, id: record.id, ...fields });
        return { kind: 'created', stamp: fields.stamp };
      });
    },
    read(owner, id, budget) {
      return run(budget, () => {
        const row = select.get(owner, id);
        return row === undefined ? undefined : fromFields(owner, id, row);
      });
    },
    stamp(owner, id, budget) {
      return run(budget, () => {
        const stamp = selectStamp.get(owner, id)?.stamp;
        return stamp === undefined ? undefined : String(stamp);
      });
    },
    delete(owner, id, budget) {
      return run(budget, () => Number(remove.run(owner, id).changes) > 0);
    },
    list(owner, budget) {
      return run(budget, () => ids.all(owner).map((row) => String(row.id)));
    },
  };
}
