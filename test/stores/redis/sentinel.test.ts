/** Redis behind Sentinels: a failover, and waiting for replicas. */

import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { StoreUnavailable, StoreWriteUnconfirmed } from '../../../src/stores/stores.ts';
import { createRecordedLog } from '../../support/log.ts';
import { openStores } from '../../support/open-stores.ts';
import { startSentinels, type TestRedis, until } from '../../support/redis.ts';
import { newOwner, record } from '../catalog-store-suite.ts';

const setup = await startSentinels();
const ENV = { REDIS_SENTINELS: setup.addresses, REDIS_SENTINEL_NAME: 'umpire' };
const stores = await openStores(ENV, createRecordedLog());
test.after.always(async () => {
  await stores.close();
  await setup.stop();
});

test.serial('a write waits for the replica where that is asked for, and says so when it cannot know', async (t) => {
  const waiting = await openStores({ ...ENV, UMPIRE_REDIS_WAIT_REPLICAS: '1' }, createRecordedLog());
  t.teardown(() => waiting.close());
  const owner = newOwner();
  let ids = 0;
  const twenty = () =>
    Promise.all(
      Array.from({ length: 20 }, () => waiting.catalogs.create(owner, record(`c${ids++}`), UNBOUNDED, budget())),
    );
  // On a busy machine the replica may need more than it is given.
  await until(async () => (await twenty()).every(({ kind }) => kind === 'created'));
  const countAt = async (redis: TestRedis) => Number(await redis.command('SCARD', `umpire:{${owner}}:catalogs`));
  t.true((await countAt(setup.replica)) >= 20);
  t.is(await countAt(setup.replica), await countAt(setup.master));
  setup.replica.freeze();
  const started = performance.now();
  const unconfirmed = Array.from({ length: 5 }, (_, index) =>
    waiting.catalogs.create(owner, record(`d${index}`), UNBOUNDED, budget()),
  );
  for (const outcome of await Promise.allSettled(unconfirmed)) {
    t.true(outcome.status === 'rejected' && outcome.reason instanceof StoreWriteUnconfirmed);
  }
  t.true(performance.now() - started < 3_000);
  // Reads are on another line and do not wait behind the writes.
  await until(async () => (await waiting.catalogs.read(owner, 'd0', budget())) !== undefined);
  setup.replica.thaw();
  await until(
    async () =>
      (await waiting.catalogs.create(owner, record(`e${performance.now()}`), UNBOUNDED, budget())).kind === 'created',
  );
});

test.serial('when the master is lost, the next one is found, with all that was confirmed by it', async (t) => {
  const owner = newOwner();
  await stores.catalogs.create(owner, record('before'), UNBOUNDED, budget());
  await until(async () => (await setup.replica.command('EXISTS', `umpire:{${owner}}:catalog:before`)) === 1);
  await setup.master.kill();
  await t.throwsAsync(stores.catalogs.read(owner, 'before', budget()), { instanceOf: StoreUnavailable });
  // Sentinels that were held up for two seconds leave every failover alone for the next thirty (their TILT mode).
  const recovery = await until(
    async () => (await stores.catalogs.read(owner, 'before', budget())) !== undefined,
    60_000,
  );
  t.is((await stores.catalogs.create(owner, record('after'), UNBOUNDED, budget())).kind, 'created');
  t.log(`failover: catalogs again after ${Math.round(recovery)} ms`);
});
