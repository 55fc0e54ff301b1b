/** Keys in SQLite: one row each, found by its hash. */
import { byOwnerAndAge, fromKeyFields, toKeyFields } from '../key-record.ts';
import type { KeyStore } from '../key-store.ts';
import type { EmbeddedDatabase } from './database.ts';

/** A key store over an open database. */
export function createSqliteKeyStore({ connection, read, write }: EmbeddedDatabase): KeyStore {
  const fields = 'hash, key_id, owner, limits, created_at, label, ends_at, ended_by, last_used_at';
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
      const { hash, endsAt = null, lastUsedAt = null } = record;
      return (await write(budget, { kind: 'add_key', hash, endsAt, lastUsedAt, fields: toKeyFields(record) })) === true;
    },
    async end(hash, endsAt, endedBy, budget) {
      return (await write(budget, { kind: 'end_key', hash, endsAt, endedBy })) === true;
    },
    async used(uses, budget) {
      if (uses.size > 0) await write(budget, { kind: 'use_keys', uses: [...uses] });
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
