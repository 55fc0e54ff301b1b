/** How old a copy of a catalog may be, over the embedded store with its calls counted. */

import test from 'ava';
import { createCatalogCache } from '../../src/domain/catalog-cache.ts';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import { UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { StoreUnavailable } from '../../src/stores/stores.ts';
import { newOwner, record } from '../stores/catalog-store-suite.ts';
import { openEmbedded } from '../support/open-stores.ts';

const stores = await openEmbedded();
test.after.always(() => stores.close());

function start() {
  const state = { now: 0, reads: 0, stamps: 0, away: false };
  const check = (): void => {
    if (state.away) throw new StoreUnavailable('away');
  };
  const cache = createCatalogCache(
    {
      ...stores.catalogs,
      async read(...args) {
        state.reads++;
        check();
        return stores.catalogs.read(...args);
      },
      async stamp(...args) {
        state.stamps++;
        check();
        return stores.catalogs.stamp(...args);
      },
    },
    () => state.now,
  );
  return { cache, state, owner: newOwner() };
}

test('a copy is used without asking for less than a second, then its stamp is asked for, and it stays the same object', async (t) => {
  const { cache, state, owner } = start();
  await stores.catalogs.create(owner, record('a', ['b', 'a']), UNBOUNDED, budget());
  const first = await cache.resolve(owner, 'a', budget());
  t.deepEqual(first?.sortedChoices, ['a', 'b']);
  state.now = 799;
  t.is(await cache.resolve(owner, 'a', budget()), first);
  t.deepEqual([state.reads, state.stamps], [1, 0]);
  state.now = 999;
  t.is(await cache.resolve(owner, 'a', budget()), first);
  t.deepEqual([state.reads, state.stamps], [1, 1]);
});

test('what another process did is seen within a second', async (t) => {
  const { cache, state, owner } = start();
  await stores.catalogs.create(owner, record('a', ['old', 'older']), UNBOUNDED, budget());
  await cache.resolve(owner, 'a', budget());
  await stores.catalogs.delete(owner, 'a', budget());
  await stores.catalogs.create(owner, record('a', ['new', 'newer']), UNBOUNDED, budget());
  state.now = 1_000;
  t.deepEqual((await cache.resolve(owner, 'a', budget()))?.choices, ['new', 'newer']);
  await stores.catalogs.delete(owner, 'a', budget());
  state.now = 2_000;
  t.is(await cache.resolve(owner, 'a', budget()), undefined);
});

test('what this process did is seen at once, also by a look-up that was under way', async (t) => {
  const { cache, owner } = start();
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  const underWay = cache.resolve(owner, 'a', budget());
  await stores.catalogs.delete(owner, 'a', budget());
  cache.forget(owner, 'a');
  await underWay;
  t.is(await cache.resolve(owner, 'a', budget()), undefined);
});

test('what is not there is not remembered', async (t) => {
  const { cache, owner } = start();
  t.is(await cache.resolve(owner, 'a', budget()), undefined);
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  t.truthy(await cache.resolve(owner, 'a', budget()));
});

test('many decisions at once ask once', async (t) => {
  const { cache, state, owner } = start();
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  await Promise.all(Array.from({ length: 20 }, () => cache.resolve(owner, 'a', budget())));
  t.is(state.reads, 1);
});

test('a copy does not outlive its second because the store is away', async (t) => {
  const { cache, state, owner } = start();
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  await cache.resolve(owner, 'a', budget());
  state.away = true;
  state.now = 700;
  t.truthy(await cache.resolve(owner, 'a', budget()));
  state.now = 1_000;
  await t.throwsAsync(cache.resolve(owner, 'a', budget()), { instanceOf: StoreUnavailable });
});
