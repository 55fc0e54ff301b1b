/** When keys were last used, over the embedded store. */
import test from 'ava';
import { watchKeyUses } from '../../src/domain/key-uses.ts';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import { StoreUnavailable } from '../../src/stores/stores.ts';
import { newOwner } from '../stores/catalog-store-suite.ts';
import { keyOf } from '../stores/key-store-suite.ts';
import { openEmbedded } from '../support/open-stores.ts';
import { until } from '../support/redis.ts';

const stores = await openEmbedded();
test.after.always(() => stores.close());

test('a key that is looked up was used; it is written together, and at the end', async (t) => {
  const [one, ended] = [keyOf(newOwner()), keyOf(newOwner(), { endsAt: 1_000, endedBy: 'revocation' })];
  for (const key of [one, ended]) await stores.keys.add(key, budget());
  let now = 5_000;
  let writes = 0;
  const counted = {
    ...stores.keys,
    used(...args: Parameters<typeof stores.keys.used>) {
      writes++;
      return stores.keys.used(...args);
    },
  };
  const { keys, close } = watchKeyUses(counted, { interval: 3_600_000, clock: () => now });
  for (const _ of Array.from({ length: 20 })) await keys.find(one.hash, budget());
  await keys.find(ended.hash, budget());
  await keys.find('0'.repeat(64), budget());
  now = 6_000;
  await keys.find(one.hash, budget());
  t.is((await stores.keys.find(one.hash, budget()))?.lastUsedAt, undefined);
  await close();
  t.is(writes, 1);
  t.is((await stores.keys.find(one.hash, budget()))?.lastUsedAt, 6_000);
  t.is((await stores.keys.find(ended.hash, budget()))?.lastUsedAt, undefined);
});

test('uses are written from time to time, and a store that is away hurts nobody', async (t) => {
  const key = keyOf(newOwner());
  await stores.keys.add(key, budget());
  let away = true;
  const store = {
    ...stores.keys,
    used: (...args: Parameters<typeof stores.keys.used>) =>
      away ? Promise.reject(new StoreUnavailable('away')) : stores.keys.used(...args),
  };
  const { keys, close } = watchKeyUses(store, { interval: 20, clock: () => 7_000 });
  await keys.find(key.hash, budget());
  await new Promise((resolve) => setTimeout(resolve, 100));
  away = false;
  await keys.find(key.hash, budget());
  await until(async () => (await stores.keys.find(key.hash, budget()))?.lastUsedAt === 7_000);
  await close();
  t.pass();
});
