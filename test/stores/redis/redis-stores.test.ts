/** The stores on one Redis: the shared suites, and what only Redis can do to them. */

import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { REVOKED } from '../../../src/stores/key-store.ts';
import { type LimitDemand, StoreCorrupt, StoreUnavailable } from '../../../src/stores/stores.ts';
import { createRecordedLog } from '../../support/log.ts';
import { openStores } from '../../support/open-stores.ts';
import { startRedis, until } from '../../support/redis.ts';
import { newOwner, record } from '../catalog-store-suite.ts';
import { keyOf } from '../key-store-suite.ts';
import { redisSuites } from './redis-suites.ts';

const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'allkeys-lru']);
const log = createRecordedLog();
const stores = await openStores({ REDIS_URL: redis.url }, log);
test.after.always(async () => {
  await stores.close();
  await redis.stop();
});

const limits = redisSuites('redis', stores);

test.serial('says in plain words how catalogs could be lost', async (t) => {
  await until(() => log.lines.some(({ message }) => message.includes('allkeys-lru')));
  const found = log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message.slice(0, 43));
  t.deepEqual(found, ['Redis evicts keys when its memory is full (']);
});

test.serial('one hash per catalog, named by its owner, the choices as one JSON field', async (t) => {
  const owner = newOwner();
  await stores.catalogs.create(owner, record('a', ['x', 'ü']), UNBOUNDED, budget());
  t.is(await redis.command('TYPE', `umpire:{${owner}}:catalog:a`), 'hash');
  t.is(await redis.command('HGET', `umpire:{${owner}}:catalog:a`, 'choices'), '["x","ü"]');
  t.is(await redis.command('TTL', `umpire:{${owner}}:catalog:a`), -1);
});

test.serial('of a key, Redis has the hash alone', async (t) => {
  const key = keyOf(newOwner());
  await stores.keys.add(key, budget());
  const fields = await redis.command('HKEYS', `umpire:key:${key.hash}`);
  t.deepEqual([...(fields as string[])].sort(), ['created_at', 'key_id', 'limits', 'owner']);
});

test.serial('scripts that the server forgot are sent again', async (t) => {
  await redis.command('SCRIPT', 'FLUSH');
  t.is((await stores.catalogs.create(newOwner(), record('a'), UNBOUNDED, budget())).kind, 'created');
});

test.serial('records that cannot be read are corrupt, stay as they are, and can be deleted', async (t) => {
  const owner = newOwner();
  const name = `umpire:{${owner}}:catalog:`;
  const whole = ['stamp', 's', 'model', 'm', 'version', '1', 'visibility', 'private', 'created_at', 'now'];
  await redis.command('SET', `${name}string`, 'text');
  await redis.command('RPUSH', `${name}list`, 'a');
  await redis.command('HSET', `${name}partly`, 'model', 'm');
  await redis.command('HSET', `${name}junk`, ...whole, 'choices', '{"a":');
  for (const id of ['string', 'list', 'partly', 'junk']) {
    const before = await redis.command('DUMP', name + id);
    await t.throwsAsync(stores.catalogs.read(owner, id, budget()), { instanceOf: StoreCorrupt }, id);
    t.is((await stores.catalogs.create(owner, record(id), UNBOUNDED, budget())).kind, 'exists', id);
    t.deepEqual(await redis.command('DUMP', name + id), before, id);
    t.true(await stores.catalogs.delete(owner, id, budget()), id);
    t.is(await stores.catalogs.read(owner, id, budget()), undefined, id);
  }
  const key = keyOf(owner);
  await redis.command('HSET', `umpire:key:${key.hash}`, 'owner', owner);
  await t.throwsAsync(stores.keys.find(key.hash, budget()), { instanceOf: StoreCorrupt });
  await redis.command('DEL', `umpire:key:${key.hash}`);
});

test.serial('a record that is broken keeps no other from being written', async (t) => {
  const [bad, good] = [keyOf(newOwner()), keyOf(newOwner())];
  await stores.keys.add(good, budget());
  await redis.command('SET', `umpire:key:${bad.hash}`, 'text');
  const uses = [bad, good].map(({ hash }) => [hash, 1_800_000_000_000] as const);
  await stores.keys.used(new Map(uses), budget());
  t.is((await stores.keys.find(good.hash, budget()))?.lastUsedAt, 1_800_000_000_000);
  const { records, unreadable } = await stores.keys.list(budget(5_000));
  t.true(records.some(({ hash }) => hash === good.hash));
  t.true(unreadable.some(({ hash, name }) => hash === bad.hash && name.includes(hash)));
  await redis.command('DEL', `umpire:key:${bad.hash}`);
  const owner = newOwner();
  await redis.command('HSET', `umpire:{${owner}}:catalog-sizes`, 'other', 'nonsense');
  t.is((await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget())).kind, 'created');
  await redis.command('DEL', `umpire:{${owner}}:catalog-sizes`);
});

test.serial('leases of a replica that died end by themselves', async (t) => {
  const subject = newOwner();
  const demand = (lease: string) => ({ subject, concurrency: { limit: 1, lease, leaseMs: 150 } });
  t.is((await limits.take(demand('a'), budget())).kind, 'admitted');
  t.is((await limits.take(demand('b'), budget())).kind, 'refused');
  await sleep(170);
  t.is((await limits.take(demand('c'), budget())).kind, 'admitted');
});

test.serial(
  'what was taken while the clock of Redis was years ahead limits nobody once it is right again',
  async (t) => {
    const ahead = Date.now() + 3_650 * 86_400_000;
    const subject = newOwner();
    const name = (part: string) => `umpire:limit:{${subject}}:${part}`;
    const take = (lease: string, rest: Partial<LimitDemand> = {}) =>
      limits.take({ subject, concurrency: { limit: 2, lease, leaseMs: 35_000 }, ...rest }, budget());
    await redis.command('ZADD', name('leases'), String(ahead + 35_000), 'lost', String(ahead + 35_001), 'lost, too');
    t.deepEqual(await take('a'), { kind: 'admitted' });
    t.deepEqual(await take('b'), { kind: 'admitted' });
    t.like(await take('c'), { by: 'concurrency' });

    await redis.command('SET', name('quota'), '2', 'PXAT', String(ahead));
    t.deepEqual(await limits.take({ subject, quota: 3 }, budget()), { kind: 'admitted' });
    t.like(await limits.take({ subject, quota: 3 }, budget()), { by: 'quota' });
    const left = Number(await redis.command('PTTL', name('quota')));
    t.true(left > 0 && left <= 86_400_000, `${left} ms`);

    // The bucket of 100 was full when the clock went ahead by forty of its intervals, and one token was taken then.
    const rate = { perSecond: 1 / 3600, burst: 100 };
    const then = Date.now() + 40 * 3_600_000;
    await redis.command('SET', name('tat'), `${then + 3_600_000} ${then}`);
    const verdicts = await Promise.all(Array.from({ length: 100 }, () => limits.take({ subject, rate }, budget())));
    t.is(verdicts.filter(({ kind }) => kind === 'admitted').length, 99);
    // What a release before wrote is read as before.
    await redis.command('SET', name('tat'), String(Date.now() + 98.5 * 3_600_000));
    t.deepEqual(await limits.take({ subject, rate }, budget()), { kind: 'admitted' });
    t.like(await limits.take({ subject, rate }, budget()), { by: 'rate' });
  },
);

test.serial('what limits leave behind expires', async (t) => {
  const subject = newOwner();
  const concurrency = { limit: 1, lease: 'a', leaseMs: 1_000 };
  await limits.take({ subject, rate: { perSecond: 10, burst: 2 }, concurrency, quota: 5 }, budget());
  for (const [part, most] of Object.entries({ tat: 200, leases: 1_000, quota: 86_400_000 })) {
    const left = Number(await redis.command('PTTL', `umpire:limit:{${subject}}:${part}`));
    t.true(left > 0 && left <= most, `${part}: ${left}`);
  }
});

test.serial('in a Redis that is full catalogs are refused and deleted, and keys are made and ended', async (t) => {
  const owner = newOwner();
  const old = keyOf(owner);
  await stores.keys.add(old, budget());
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  await redis.command('CONFIG', 'SET', 'maxmemory', '1mb');
  t.teardown(async () => {
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  });
  await t.throwsAsync(stores.catalogs.create(owner, record('b'), UNBOUNDED, budget()), {
    instanceOf: StoreUnavailable,
  });
  t.true(await stores.keys.end(old.hash, REVOKED, 'revocation', budget()));
  t.is((await stores.keys.find(old.hash, budget()))?.endsAt, REVOKED);
  t.true(await stores.keys.add(keyOf(owner), budget()));
  t.true(await stores.catalogs.delete(owner, 'a', budget()));
});

test.serial('scripts that are forgotten in the middle of the load fail no request', async (t) => {
  const flushed = await startRedis();
  const stores = await openStores({ REDIS_URL: flushed.url });
  t.teardown(async () => {
    await stores.close();
    await flushed.stop();
  });
  const owner = newOwner();
  let working = true;
  const work = async (worker: number): Promise<number> => {
    let done = 0;
    for (; working; done += 1) {
      const id = `${worker}-${done}`;
      t.is((await stores.catalogs.create(owner, record(id), UNBOUNDED, budget(5000))).kind, 'created');
      const rate = { perSecond: 1000, burst: 1_000_000 };
      t.is((await stores.limits?.take({ subject: owner, rate }, budget(5000)))?.kind, 'admitted');
      t.true(await stores.catalogs.delete(owner, id, budget(5000)));
    }
    return done;
  };
  const workers = [1, 2, 3, 4].map(work);
  for (let flush = 0; flush < 20; flush += 1) {
    await flushed.command('SCRIPT', 'FLUSH');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  working = false;
  for (const done of await Promise.all(workers)) t.true(done > 0);
});
