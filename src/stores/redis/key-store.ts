/**
 * Keys in Redis: one hash each, named by the key's SHA-256. They have no index, so the operator's commands scan all
 * servers.
 */
import { fromKeyFields, keyListOf, toKeyFields } from '../key-record.ts';
import { type KeyStore, WRONG_CLOCK_MS } from '../key-store.ts';
import { StoreCorrupt } from '../stores.ts';
import { type RedisConnection, scanNames } from './connection.ts';
import type { RedisLink } from './link.ts';
import { KEY_PREFIX, keyName } from './names.ts';
import { storeError } from './reply-errors.ts';
import { ADD_KEY, END_KEY, USE_KEY } from './scripts.ts';
import type { RedisWriter } from './writer.ts';

/** The fields of a key's hash that are read. */
const FIELDS = ['key_id', 'owner', 'limits', 'created_at', 'label', 'ends_at', 'ended_by', 'last_used_at'] as const;

/** A key store that reads over a link and writes through a writer. */
export function createRedisKeyStore(link: RedisLink, writer: RedisWriter): KeyStore {
  return {
    find: (hash, budget) =>
      link.call('repeatable', keyName(hash), budget, async (connection) => {
        const fields = await read(connection, hash);
        return fields === undefined ? undefined : fromKeyFields(hash, fields);
      }),
    async add(record, budget) {
      const fields = Object.entries(toKeyFields(record)).filter(([, text]) => text !== '');
      const times = Object.entries({ ends_at: record.endsAt, last_used_at: record.lastUsedAt });
      const kept = times.flatMap(([name, at]) => (at === undefined ? [] : [name, String(at)]));
      return (await writer.run(ADD_KEY, [keyName(record.hash)], [...fields.flat(), ...kept], budget)) === 1;
    },
    async end(hash, endsAt, endedBy, budget) {
      return (await writer.run(END_KEY, [keyName(hash)], [String(endsAt), endedBy], budget)) === 1;
    },
    async used(uses, budget) {
      // Replicas are not waited for: a time of last use that a failover loses matters to nobody.
      for (const [hash, at] of uses) {
        const key = keyName(hash);
        const args = [String(at), String(WRONG_CLOCK_MS)];
        await link.call('write', key, budget, (connection) => USE_KEY.run(connection, [key], args)).catch(skipCorrupt);
      }
    },
    list: (budget) =>
      link.call('repeatable', undefined, budget, async (connection) => {
        const found: [string, Fields | undefined][] = [];
        for await (const name of scanNames(connection, `${KEY_PREFIX}*`)) {
          const hash = name.slice(KEY_PREFIX.length);
          try {
            const fields = await read(connection, hash);
            if (fields !== undefined) found.push([hash, fields]);
          } catch (error) {
            skipCorrupt(storeError(error, 'repeatable'));
            found.push([hash, undefined]);
          }
        }
        return keyListOf(found);
      }),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** The fields of a key; undefined if there is none. */
async function read(connection: RedisConnection, hash: string): Promise<Fields | undefined> {
  const key = keyName(hash);
  const reply = await connection.send(key, ['HMGET', key, ...FIELDS]);
  const values = Array.isArray(reply) ? reply : [];
  if (values.every((value) => value === null)) return undefined;
  return Object.fromEntries(FIELDS.map((name, place) => [name, values[place]]));
}

/** Lets work go on past a record that cannot be read. @throws any other error. */
function skipCorrupt(error: unknown): void {
  if (!(error instanceof StoreCorrupt)) throw error;
}
