/** Keys in SQLite: one row each, found by its hash. */
import { fromKeyFields, keyListOf, toKeyFields } from '../key-record.ts';
import { type KeyStore, WRONG_CLOCK_MS } from '../key-store.ts';
import type { EmbeddedDatabase } from './database.ts';

// As floating-point numbers: an integer that JavaScript cannot hold would make the whole query throw.
const TIMES = ['ends_at', 'last_used_at'].map((name) => `CAST(${name} AS REAL) AS ${name}`);
const SELECT_ALL = `SELECT hash, key_id, owner, limits, created_at, label, ended_by, ${TIMES.join(', ')} FROM keys`;
const SELECT = `${SELECT_ALL} WHERE hash = ?`;
const INSERT = `INSERT INTO keys (hash, key_id, owner, limits, created_at, label, ends_at, ended_by, last_used_at)
  VALUES (:hash, :key_id, :owner, :limits, :created_at, :label, :endsAt, :ended_by, :lastUsedAt) ON CONFLICT DO NOTHING`;
const END = `UPDATE keys SET ended_by = iif(ends_at <= :end, ended_by, :by), ends_at = min(ifnull(ends_at, :end), :end)
  WHERE hash = :hash`;
const USE = `UPDATE keys SET last_used_at = :at
  WHERE hash = :hash AND (ifnull(last_used_at, 0) < :at OR last_used_at > :at + ${WRONG_CLOCK_MS})`;

/** A key store over an open database. */
export function createSqliteKeyStore(database: EmbeddedDatabase): KeyStore {
  return {
    find(hash, budget) {
      return database.read(budget, (prepare) => {
        const row = prepare(SELECT).get(hash);
        return row === undefined ? undefined : fromKeyFields(hash, row);
      });
    },
    async add(record, budget) {
      const { hash, endsAt = null, lastUsedAt = null } = record;
      const row = { hash, endsAt, lastUsedAt, ...toKeyFields(record) };
      return (await database.write(budget, { sql: INSERT, rows: [row] })).changes > 0;
    },
    async end(hash, end, by, budget) {
      return (await database.write(budget, { sql: END, rows: [{ hash, end, by }] })).changes > 0;
    },
    async used(uses, budget) {
      const rows = Array.from(uses, ([hash, at]) => ({ hash, at }));
      if (rows.length > 0) await database.write(budget, { sql: USE, rows, grows: true });
    },
    list(budget) {
      return database.read(budget, (prepare) =>
        keyListOf(
          prepare(SELECT_ALL)
            .all()
            .map((row) => [String(row.hash), row]),
        ),
      );
    },
  };
}
