/**
 * Keys in Redis: one hash each, named by the key's SHA-256. They have no index, so the operator's commands scan all
 * servers.
 */
import { byOwnerAndAge, fromKeyFields, toKeyFields } from '../key-record.ts';
import type { KeyRecord, KeyStore } from '../key-store.ts';
import type { RedisConnection } from './connection.ts';
import type { RedisLink } from './link.ts';
import { KEY_PREFIX, keyName } from './names.ts';
import { scanNames } from './scan.ts';
import { ADD_KEY, END_KEY, USE_KEY } from './scripts.ts';
import type { RedisWriter } from './writer.ts';

/** The fields of a key's hash that are read. */
const FIELDS = ['key_id', 'owner', 'limits', 'created_at', 'label', 'ends_at', 'ended_by', 'last_used_at'] as const;

/** A key store that reads over a link and writes through a writer. */
export function createRedisKeyStore(link: RedisLink, writer: RedisWriter): KeyStore {
  return {
    find: (hash, budget) => link.call('repeatable', keyName(hash), budget, (connection) => read(connection, hash)),
    async add(record, budget) {
      const fields = Object.entries(toKeyFields(record)).filter(([, text]) => text !== '');
      const times = Object.entries({ ends_at: record.endsAt, last_used_at: record.lastUsedAt });
      const kept = times.flatMap(([name, at]) => (at === undefined ? [] : [name, String(at)]));
      const args = [...fields.flat(), ...kept];
      const key = keyName(record.hash);
      const isAdded = (reply: unknown): boolean => reply === 1;
      return isAdded(await writer.write(budget, key, (connection) => ADD_KEY.run(connection, [key], args), isAdded));
    },
    async end(hash, endsAt, endedBy, budget) {
      const key = keyName(hash);
      const isThere = (reply: unknown): boolean => reply === 1;
      return isThere(
        await writer.write(
          budget,
          key,
          (connection) => END_KEY.run(connection, [key], [String(endsAt), endedBy]),
          isThere,
        ),
      );
    },
    async used(uses, budget) {
      // Replicas are not waited for: a time of last use that a failover loses matters to nobody.
      for (const [hash, at] of uses) {
        const key = keyName(hash);
        await link.call('write', key, budget, (connection) => USE_KEY.run(connection, [key], [String(at)]));
      }
    },
    list: (budget) =>
      link.call('repeatable', undefined, budget, async (connection) => {
        const records: KeyRecord[] = [];
        for await (const name of scanNames(connection, `${KEY_PREFIX}*`)) {
          const record = await read(connection, name.slice(KEY_PREFIX.length));
          if (record !== undefined) records.push(record);
        }
        return records.sort(byOwnerAndAge);
      }),
  };
}

async function read(connection: RedisConnection, hash: string): Promise<KeyRecord | undefined> {
  const key = keyName(hash);
  const reply = await connection.send(key, ['HMGET', key, ...FIELDS]);
  const values = Array.isArray(reply) ? reply : [];
  if (values.every((value) => value === null)) return undefined;
  return fromKeyFields(hash, Object.fromEntries(FIELDS.map((name, place) => [name, values[place]])));
}
