/** Keys in SQLite: one row each, found by its hash. */
import { fromKeyFields, keyListOf, toKeyFields } from '../key-record.ts';
import type { KeyStore } from '../key-store.ts';
import type { EmbeddedDatabase } from './database.ts';

/** A key store over an open database. */
export function createSqliteKeyStore(database: EmbeddedDatabase): KeyStore {
  // As floating-point numbers: an integer that JavaScript cannot hold would make the whole query throw.
  const times = ['ends_at', 'last_used_at'].map((name) => `CAST(${name} AS REAL) AS ${name}`);
  const fields = `hash, key_id, owner, limits, created_at, label, ended_by, ${times.join(', ')}`;
  const select = `SELECT ${fields} FROM keys WHERE hash = ?`;
  const selectAll = `SELECT ${fields} FROM keys`;

  return {
    find(hash, budget) {
      return database.read(budget, (prepare) => {
        const row = prepare(select).get(hash);
        return row === undefined ? undefined : fromKeyFields(hash, row);
      });
    },
    async add(record, budget) {
      const { hash, endsAt = null, lastUsedAt = null } = record;
      return (
        (await database.write(budget, { kind: 'add_key', hash, endsAt, lastUsedAt, fields: toKeyFields(record) })) ===
        true
      );
    },
    async end(hash, endsAt, endedBy, budget) {
      return (await database.write(budget, { kind: 'end_key', hash, endsAt, endedBy })) === true;
    },
    async used(uses, budget) {
      if (uses.size > 0) await database.write(budget, { kind: 'use_keys', uses: [...uses] });
    },
    list(budget) {
      return database.read(budget, (prepare) =>
        keyListOf(
          prepare(selectAll)
            .all()
            .map((row) => [String(row.hash), row]),
        ),
      );
    },
  };
}
