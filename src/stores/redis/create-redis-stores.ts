/** Puts the stores over Redis together. */
import type { RedisSettings } from '../settings.ts';
import type { StoreLog, Stores } from '../stores.ts';
import { createRedisCatalogStore } from './catalog-store.ts';
import { openerOf } from './cluster.ts';
import { inspectDurability } from './inspect.ts';
import { createRedisKeyStore } from './key-store.ts';
import { createRedisLimitStore } from './limit-store.ts';
import { RedisLink } from './link.ts';
import { RedisWriter } from './writer.ts';

/** Milliseconds that the start of a process waits for Redis before it goes on without. */
const START_MS = 1_500;

/** Begins to connect; resolves when the connection is open, or after `START_MS` without one. */
export async function createRedisStores(settings: RedisSettings, log: StoreLog): Promise<Stores> {
  const open = openerOf(settings);
  let inspected = false;
  const link = new RedisLink({
    open,
    log,
    onConnection(connection) {
      if (inspected) return;
      inspected = true;
      void inspectDurability(connection, log);
    },
  });
  const writing = settings.waitReplicas === 0 ? link : new RedisLink({ open, log });
  const writer = new RedisWriter(writing, settings.waitReplicas);
  await Promise.all([link.opened(START_MS), writing.opened(START_MS)]);
  return {
    catalogs: createRedisCatalogStore(link, writer),
    keys: createRedisKeyStore(link, writer),
    limits: createRedisLimitStore(link),
    health: () => ({ kind: 'redis', up: link.up, reconnects: link.reconnects, latencyMs: link.latencyMs }),
    async close() {
      await Promise.all(writing === link ? [link.close()] : [link.close(), writing.close()]);
    },
  };
}
