/** Keys in Redis: one hash each, named by the key's SHA-256. There is no index of them: operators' commands walk all servers. */
import { byOwnerAndAge, fromKeyFields, toKeyFields } from '../key-record.ts';
import type { KeyRecord, KeyStore } from '../key-store.ts';
import type { RedisConnection, RedisNodeConnection } from './connection.ts';
import type { RedisLink } from './link.ts';
import { KEY_PREFIX, keyName } from './names.ts';
import { addKey, endKey } from './scripts.ts';
import type { RedisWriter } from './writer.ts';

const FIELDS = ['key_id', 'owner', 'limits', 'created_at', 'ends_at'] as const;

/** A store that reads on a line and writes through a writer. */
export function createRedisKeyStore(link: RedisLink, writer: RedisWriter): KeyStore {
  return {
    find: (hash, budget) => link.call('read', keyName(hash), budget, (connection) => read(connection, hash)),
    async add(record, budget) {
      const end = record.endsAt === undefined ? [] : ['ends_at', String(record.endsAt)];
      const args = [...Object.entries(toKeyFields(record)).flat(), ...end];
      const key = keyName(record.hash);
      const isAdded = (reply: unknown): boolean => reply === 1;
      return isAdded(await writer.write(budget, key, (connection) => addKey.run(connection, [key], args), isAdded));
    },
    async end(hash, endsAt, budget) {
      const key = keyName(hash);
      const isThere = (reply: unknown): boolean => reply === 1;
      return isThere(
        await writer.write(budget, key, (connection) => endKey.run(connection, [key], [String(endsAt)]), isThere),
      );
    },
    list: (budget) =>
      link.call('read', undefined, budget, async (connection) => {
        const records: KeyRecord[] = [];
        for (const node of await connection.nodes()) {
          for await (const name of scan(node)) {
            const record = await read(connection, name.slice(KEY_PREFIX.length));
            if (record !== undefined) records.push(record);
          }
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

async function* scan(node: RedisNodeConnection): AsyncGenerator<string> {
  const seen = new Set<string>();
  let cursor = '0';
  do {
    const reply = await node.send(['SCAN', cursor, 'MATCH', `${KEY_PREFIX}*`, 'COUNT', '1000']);
    const [next, names] = reply as [string, readonly string[]];
    for (const name of names) {
      // SCAN may name a key twice.
      if (!seen.has(name)) yield name;
      seen.add(name);
    }
    cursor = next;
  } while (cursor !== '0');
}
