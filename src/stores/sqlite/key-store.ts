/** Keys in SQLite: one row each, by hash. */
import { byOwnerAndAge, fromKeyFields, toKeyFields } from '../key-record.ts';
import type { KeyStore } from '../key-store.ts';
import type { EmbeddedDatabase } from './database.ts';

/** A store over an open database. */
export function createSqliteKeyStore({ connection, read, write }: EmbeddedDatabase): KeyStore {
  const fields = 'hash, key_id, owner, limits, created_at, ends_at';
  const select = connection.prepare(`SELECT ${fields} FROM keys WHERE hash = ?`);
  const selectAll = connection.prepare(`SELECT ${fields} FROM keys`);

  return {
    find(hash, budget) {
      return read(budget, () => {
        const row = select.get(hash);
        return row === undefined ? undefined : fromKeyFields(hash, row);
      });
    },
    async add(record, budget) {
      const { hash, endsAt = null } = record;
      return (await write(budget, { kind: 'add_key', hash, endsAt, fields: toKeyFields(record) })) === true;
    },
    async end(hash, endsAt, budget) {
      return (await write(budget, { kind: 'end_key', hash, endsAt })) === true;
    },
    list(budget) {
      return read(budget, () =>
        selectAll
          .all()
          .map((row) => fromKeyFields(String(row.hash), row))
          .sort(byOwnerAndAge),
      );
    },
  };
}
