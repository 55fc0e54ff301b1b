/** Catalogs in SQLite: one row each, with the choices as one JSON text. */
import { CATALOG_FIELDS, fromFields, toFields } from '../catalog-record.ts';
import type { CatalogStore } from '../catalog-store.ts';
import type { EmbeddedDatabase } from './database.ts';

const ONE = 'FROM catalogs WHERE owner = :owner AND id = :id';
const SELECT = `SELECT ${CATALOG_FIELDS.join(', ')} ${ONE}`;
const COLUMNS = ['owner', 'id', ...CATALOG_FIELDS, 'examples'];
// octet_length() reads the size of a value, not the value.
const INSERT = `INSERT INTO catalogs (${COLUMNS.join(', ')}) SELECT ${COLUMNS.map((name) => `:${name}`).join(', ')}
  FROM (SELECT count(*) AS catalogs, ifnull(sum(octet_length(choices)), 0) AS bytes FROM catalogs WHERE owner = :owner)
  WHERE catalogs < :mostCatalogs AND bytes + octet_length(:choices) <= :mostBytes ON CONFLICT DO NOTHING`;
/** Why nothing is inserted, if not for the bytes. */
const OBSTACLES = `SELECT EXISTS (SELECT 1 ${ONE}) AS taken, count(*) >= :mostCatalogs AS isFull
  FROM catalogs WHERE owner = :owner`;
const UPDATE = `UPDATE catalogs SET ${CATALOG_FIELDS.map((name) => `${name} = :${name}`).join(', ')},
  examples = ifnull(:examples, examples) WHERE owner = :owner AND id = :id AND stamp = :expected`;

/** A catalog store over an open database. */
export function createSqliteCatalogStore(database: EmbeddedDatabase): CatalogStore {
  return {
    async create(owner, record, bounds, budget, examples = '') {
      const fields = toFields(record);
      const most = { mostCatalogs: bounds.catalogs, mostBytes: bounds.bytes };
      const rows = [{ owner, id: record.id, ...fields, examples, ...most }];
      const { changes, before } = await database.write(budget, { sql: INSERT, rows, before: OBSTACLES, grows: true });
      if (changes > 0) return { kind: 'created', stamp: fields.stamp };
      if (before?.taken === 1) return { kind: 'exists' };
      return { kind: 'full', by: before?.isFull === 1 ? 'catalogs' : 'bytes' };
    },
    read(owner, id, budget) {
      return database.read(budget, (prepare) => {
        const row = prepare(SELECT).get({ owner, id });
        return row === undefined ? undefined : fromFields(owner, id, row);
      });
    },
    stamp(owner, id, budget) {
      return database.read(budget, (prepare) => {
        const stamp = prepare(`SELECT stamp ${ONE}`).get({ owner, id })?.stamp;
        return stamp === undefined ? undefined : String(stamp);
      });
    },
    async replace(owner, expected, record, budget, examples) {
      const row = { owner, id: record.id, ...toFields(record), expected, examples: examples ?? null };
      return (await database.write(budget, { sql: UPDATE, rows: [row], grows: true })).changes > 0;
    },
    examples(owner, id, budget) {
      const sql = `SELECT examples ${ONE}`;
      return database.read(budget, (prepare) => String(prepare(sql).get({ owner, id })?.examples ?? ''));
    },
    async delete(owner, id, budget) {
      return (await database.write(budget, { sql: `DELETE ${ONE}`, rows: [{ owner, id }] })).changes > 0;
    },
    list(owner, budget) {
      const sql = 'SELECT id FROM catalogs WHERE owner = ? ORDER BY id';
      return database.read(budget, (prepare) =>
        prepare(sql)
          .all(owner)
          .map((row) => String(row.id)),
      );
    },
    owners(budget) {
      const sql = 'SELECT DISTINCT owner FROM catalogs ORDER BY owner';
      return database.read(budget, (prepare) =>
        prepare(sql)
          .all()
          .map((row) => String(row.owner)),
      );
    },
  };
}
