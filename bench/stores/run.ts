/**
 * What a request pays for its store calls: creating and reading catalogs, looking up keys and checking limits, on each
 * store, compared with the least that the store can do in the same run. Times are of one call after another; CPU time
 * is this process's own with 32 calls in flight; round trips are counted by Redis.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createClient } from 'redis';
import { Authenticator } from '../../src/domain/authenticate.ts';
import { CatalogCache } from '../../src/domain/catalog-cache.ts';
import { LIMIT_SETTINGS, limitsOf } from '../../src/domain/limit-settings.ts';
import { Limits } from '../../src/domain/limits.ts';
import { readSettings } from '../../src/domain/settings.ts';
import { createStoreBudget } from '../../src/stores/budget.ts';
import { type CatalogRecord, UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { createStores } from '../../src/stores/create-stores.ts';
import { parseStoreSettings } from '../../src/stores/settings.ts';
import { SILENT_LOG, type Stores } from '../../src/stores/stores.ts';
import { issueKey } from '../../test/support/keys.ts';
import { startRedis } from '../../test/support/redis.ts';
import { median } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

type Work = () => unknown;

const budget = () => createStoreBudget(60_000);
const record = (id: string, count: number): CatalogRecord => ({
  id,
  model: 'minilm-l6',
  choices: Array.from({ length: count }, (_, index) => `choice number ${index} of many`),
  version: '1',
  visibility: 'private',
  createdAt: new Date().toISOString(),
});

/** Median microseconds of a call, one at a time, and this process's CPU microseconds of a call with 32 in flight. */
async function measure(work: Work, calls: number): Promise<{ readonly wall: number; readonly cpu: number }> {
  for (let count = 0; count < calls / 10; count++) await work();
  const samples: number[] = [];
  for (let count = 0; count < calls; count++) {
    const started = performance.now();
    await work();
    samples.push((performance.now() - started) * 1_000);
  }
  const before = process.cpuUsage();
  let left = calls;
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (left-- > 0) await work();
    }),
  );
  const used = process.cpuUsage(before);
  return { wall: median(samples), cpu: (used.user + used.system) / calls };
}

/** Every piece of work on one deployment's stores, with its name and how often it is measured. */
async function worksOf(stores: Stores): Promise<readonly (readonly [string, Work, number])[]> {
  const { catalogs, keys, limits: limitStore } = stores;
  const issued = await issueKey(stores, 'bench');
  await catalogs.create('bench', record('small', 8), UNBOUNDED, budget());
  await catalogs.create('bench', record('large', 300), UNBOUNDED, budget());
  let ids = 0;
  let now = 0;
  const caller = {
    kind: 'key',
    owner: 'bench',
    keyId: issued.keyId,
    address: '192.0.2.1',
    limits: { quota: 1e9 },
  } as const;
  const unlimited = { perSecond: 1e6, burst: 1e6 };
  const limits = new Limits({
    settings: {
      ...limitsOf(readSettings(LIMIT_SETTINGS, {}).value),
      key: { rate: unlimited, concurrency: 1_000, quota: 1e9 },
    },
    store: limitStore,
    log: SILENT_LOG,
  });
  const authenticator = new Authenticator({ keys, limitBadKeys: true });
  const { authorization } = issued.headers;
  const warm = new CatalogCache(catalogs);
  const stale = new CatalogCache(catalogs, () => (now += 1_000));
  return [
    ['create, 8 choices', () => catalogs.create('bench', record(`c${ids++}`, 8), UNBOUNDED, budget()), 400],
    ['create, 300 choices', () => catalogs.create('bench', record(`c${ids++}`, 300), UNBOUNDED, budget()), 400],
    ['read, 8 choices', () => catalogs.read('bench', 'small', budget()), 4_000],
    ['read, 300 choices', () => catalogs.read('bench', 'large', budget()), 4_000],
    ['catalog for a decision, copy of the last second', () => warm.resolve('bench', 'large', budget()), 20_000],
    ['catalog for a decision, copy validated', () => stale.resolve('bench', 'large', budget()), 4_000],
    ['key look-up', () => keys.find(issued.hash, budget()), 4_000],
    [
      'key in the cache, hashing included',
      () => authenticator.authenticate(authorization, '192.0.2.1', budget()),
      20_000,
    ],
    [
      'limit check: rate, concurrency and quota',
      async () => (await limits.grant(caller, 'decision', budget())).release(),
      4_000,
    ],
  ];
}

/** Runs the benchmark and prints its table. */
export async function run(): Promise<void> {
  const rows: string[][] = [];
  const folder = mkdtempSync(join(tmpdir(), 'umpire-bench-'));
  const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec']);
  const client = createClient({ url: redis.url, commandOptions: { timeout: 0 } });
  await client.connect();
  const watcher = await client.duplicate().connect();
  let trips = 0;
  // MONITOR marks the commands that a script calls within the server; all others came over the network.
  await watcher.monitor((line) => {
    if (!String(line).includes(' lua] ') && !/"(ping|role|zrem)"/i.test(String(line))) trips++;
  });

  const settle = () => new Promise((resolve) => setTimeout(resolve, 50));
  const add = async (store: string, title: string, work: Work, calls: number): Promise<void> => {
    const { wall, cpu } = await measure(work, calls);
    await settle();
    trips = 0;
    for (let count = 0; count < 100; count++) await work();
    await settle();
    const roundTrips = store === 'redis' ? (trips / 100).toFixed(2) : '';
    rows.push([`${store}: ${title}`, wall.toFixed(1), cpu.toFixed(1), roundTrips]);
  };

  const bare = new DatabaseSync(':memory:').prepare('SELECT 1');
  await add('sqlite', 'baseline, SELECT 1 in memory', () => bare.get(), 20_000);
  const sqlite = await createStores({ kind: 'sqlite', folder }, SILENT_LOG);
  for (const [title, work, calls] of await worksOf(sqlite)) await add('sqlite', title, work, calls);
  await sqlite.close();

  await add('redis', 'baseline, a bare GET by the same client', () => client.get('nothing'), 4_000);
  const stores = await createStores(parseStoreSettings({ REDIS_URL: redis.url }).value, SILENT_LOG);
  for (const [title, work, calls] of await worksOf(stores)) await add('redis', title, work, calls);
  await stores.close();

  watcher.destroy();
  client.destroy();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
  printTable(['work', 'µs a call', 'CPU µs a call', 'round trips'], rows);
}
