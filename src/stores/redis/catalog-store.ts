/** Catalogs in Redis: one hash each, with the choices as one JSON field, and for each owner a set of the ids. */
import type { StoreBudget } from '../budget.ts';
import { CATALOG_FIELDS, fromFields, toFields } from '../catalog-record.ts';
import type { CatalogStore } from '../catalog-store.ts';
import { scanNames } from './connection.ts';
import type { RedisLink } from './link.ts';
import { CATALOG_IDS_PATTERN, catalogIdsName, catalogName, catalogSizesName, ownerOfCatalogIds } from './names.ts';
import { CREATE_CATALOG, DELETE_CATALOG, REPLACE_CATALOG } from './scripts.ts';
import type { RedisWriter } from './writer.ts';

/** A catalog store that reads over a link and writes through a writer. */
export function createRedisCatalogStore(link: RedisLink, writer: RedisWriter): CatalogStore {
  /** Sends a command that only reads to the server that has the key. */
  const ask = (key: string, budget: StoreBudget, command: readonly string[]): Promise<unknown> =>
    link.call('repeatable', key, budget, (connection) => connection.send(key, command));

  return {
    async create(owner, record, bounds, budget, examples = '') {
      const fields = toFields(record);
      const key = catalogName(owner, record.id);
      const args = [
        ...[bounds.catalogs, bounds.bytes].map((bound) => String(Math.min(bound, Number.MAX_SAFE_INTEGER))),
        catalogName(owner, ''),
        record.id,
        String(Buffer.byteLength(fields.choices)),
        ...Object.entries({ ...fields, examples }).flat(),
      ];
      const keys = [key, catalogIdsName(owner), catalogSizesName(owner)] as const;
      const reply = await writer.run(CREATE_CATALOG, keys, args, budget, 'created');
      if (reply === 'created') return { kind: 'created', stamp: fields.stamp };
      if (reply === 'too_many') return { kind: 'full', by: 'catalogs' };
      return reply === 'too_large' ? { kind: 'full', by: 'bytes' } : { kind: 'exists' };
    },
    async read(owner, id, budget) {
      const key = catalogName(owner, id);
      const reply = await ask(key, budget, ['HMGET', key, ...CATALOG_FIELDS]);
      const values = Array.isArray(reply) ? reply : [];
      // A missing key and a hash without any of the fields give the same reply; nothing can be read of either.
      if (values.every((value) => value === null)) return undefined;
      return fromFields(owner, id, Object.fromEntries(CATALOG_FIELDS.map((name, place) => [name, values[place]])));
    },
    async stamp(owner, id, budget) {
      const key = catalogName(owner, id);
      // A hash without a stamp is unreadable: read() throws for it, and create() finds that it exists.
      const stamp = await ask(key, budget, ['HGET', key, 'stamp']);
      return typeof stamp === 'string' ? stamp : undefined;
    },
    async replace(owner, stamp, record, budget, examples) {
      const fields = toFields(record);
      const key = catalogName(owner, record.id);
      const values = Object.entries({ ...fields, ...(examples === undefined ? {} : { examples }) }).flat();
      const args = [stamp, record.id, String(Buffer.byteLength(fields.choices)), ...values];
      return (await writer.run(REPLACE_CATALOG, [key, catalogSizesName(owner)], args, budget)) === 1;
    },
    async examples(owner, id, budget) {
      const key = catalogName(owner, id);
      const found = await ask(key, budget, ['HGET', key, 'examples']);
      return typeof found === 'string' ? found : '';
    },
    async delete(owner, id, budget) {
      const keys = [catalogName(owner, id), catalogIdsName(owner), catalogSizesName(owner)] as const;
      return (await writer.run(DELETE_CATALOG, keys, [id], budget)) === 1;
    },
    async list(owner, budget) {
      const key = catalogIdsName(owner);
      return [...((await ask(key, budget, ['SMEMBERS', key])) as Iterable<string>)].sort();
    },
    owners: (budget) =>
      link.call('repeatable', undefined, budget, async (connection) => {
        const owners: string[] = [];
        for await (const name of scanNames(connection, CATALOG_IDS_PATTERN)) owners.push(ownerOfCatalogIds(name));
        return owners.sort();
      }),
  };
}
