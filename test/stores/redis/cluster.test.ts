/** The stores on a cluster of three: the shared suites, the layout of keys, and a node that is lost. */

import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { slotOf } from '../../../src/stores/redis/names.ts';
import { StoreUnavailable } from '../../../src/stores/stores.ts';
import { createRecordedLog } from '../../support/log.ts';
import { openStores } from '../../support/open-stores.ts';
import { startCluster, until } from '../../support/redis.ts';
import { newOwner, record } from '../catalog-store-suite.ts';
import { keyOf } from '../key-store-suite.ts';
import { redisSuites } from './redis-suites.ts';

const cluster = await startCluster();
const [first] = cluster.nodes;
if (first === undefined) throw new Error('no node');
const stores = await openStores({ REDIS_CLUSTER: cluster.addresses }, createRecordedLog());
test.after.always(async () => {
  await stores.close();
  await cluster.stop();
});

redisSuites('cluster', stores);

const keySlot = (name: string): Promise<unknown> => first.command('CLUSTER', 'KEYSLOT', name);

test.serial("all that is an owner's, or limits one subject, is in one slot; owners and keys are spread", async (t) => {
  const names = (owner: string) => [
    `umpire:{${owner}}:catalog:a`,
    `umpire:{${owner}}:catalog:b`,
    `umpire:{${owner}}:catalogs`,
  ];
  t.is(new Set(await Promise.all(names('acme').map(keySlot))).size, 1);
  const limit = ['tat', 'leases', 'quota'].map((part) => `umpire:limit:{key:key_1}:${part}`);
  t.is(new Set(await Promise.all(limit.map(keySlot))).size, 1);
  const owners = Array.from({ length: 30 }, () => newOwner());
  for (const owner of owners) {
    await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
    await stores.keys.add(keyOf(owner), budget());
  }
  for (const node of cluster.nodes) {
    t.true(Number(await node.command('DBSIZE')) > 5);
  }
  const listed = new Set((await stores.keys.list(budget(5_000))).records.map(({ owner }) => owner));
  t.true(owners.every((owner) => listed.has(owner)));
});

test.serial('a node that is away takes its own owners along and nobody else, and comes back by itself', async (t) => {
  const owners = Array.from({ length: 12 }, () => newOwner());
  for (const owner of owners) await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  await Promise.all(cluster.nodes.map((node) => node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no')));
  const victim = cluster.nodes[1];
  if (victim === undefined) return t.fail();
  const others: string[] = [];
  for (const owner of owners) {
    const name = `umpire:{${owner}}:catalog:a`;
    t.is(slotOf(name), Number(await first.command('CLUSTER', 'KEYSLOT', name)));
    const place = Math.floor(slotOf(name) / Math.ceil(16_384 / 3));
    if (cluster.nodes[place] !== victim) others.push(owner);
  }
  t.true(others.length > 0 && others.length < owners.length);
  const answers = async (): Promise<boolean[]> =>
    Promise.all(
      owners.map(async (owner) => {
        try {
          return (await stores.catalogs.read(owner, 'a', budget())) !== undefined;
        } catch (error) {
          t.true(error instanceof StoreUnavailable);
          return false;
        }
      }),
    );
  victim.freeze();
  await answers();
  // From now on nobody waits for the one that is away, and the others are as always.
  for (let round = 0; round < 20; round++) {
    const started = performance.now();
    const alive = (await answers()).filter(Boolean).length;
    t.is(alive, others.length);
    if (round > 3) t.true(performance.now() - started < 200);
    await sleep(50);
  }
  victim.thaw();
  const recovery = await until(async () => (await answers()).every(Boolean));
  t.log(`a frozen node: all owners again after ${Math.round(recovery)} ms`);
});
