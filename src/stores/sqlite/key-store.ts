/** Keys in SQLite: one row each, by hash. */
import { byOwnerAndAge, fromKeyFields, toKeyFields } from '../key-record.ts';
import type { KeyStore } from '../key-store.ts';
import type { EmbeddedDatabase } from './database.ts';

/** A store over an open database. */
export function createSqliteKeyStore({ connection, run }: EmbeddedDatabase): KeyStore {
  const fields = 'hash, key_id, owner, limits, created_at, ends_at';
  const select = connection.prepare(`SELECT ${fields} FROM keys WHERE hash = ?`);
  const selectAll = connection.prepare(`SELECT ${fields} FROM keys`);
  const insert = connection.prepare(
    `INSERT INTO keys (${fields}) VALUES (:hash, :key_id, :owner, :limits, :created_at, :ends_at) ON CONFLICT (hash) DO NOTHING`,
  );
  const update = connection.prepare('UPDATE keys SET ends_at = min(ifnull(ends_at, :end), :end) WHERE hash = :hash');

  return {
    find(hash, budget) {
      return run(budget, () => {
        const row = select.get(hash);
        return row === undefined ? undefined : fromKeyFields(hash, row);
      });
    },
    add(record, budget) {
      const row = { hash: record.hash, ...toKeyFields(record), ends_at: record.endsAt ?? null };
      return run(budget, () => Number(insert.run(row).changes) > 0);
    },
    end(hash, endsAt, budget) {
      return run(budget, () => Number(update.run({ hash, end: endsAt }).changes) > 0);
    },
    list(budget) {
      return run(budget, () =>
        selectAll
          .all()
          .map((row) => fromKeyFields(String(row.hash), row))
          .sort(byOwnerAndAge),
      );
    },
  };
}
