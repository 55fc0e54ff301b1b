/** Redis behind Sentinels: a failover, and waiting for replicas. */
import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { createStores } from '../../../src/stores/create-stores.ts';
import { StoreUnavailable, StoreWriteUnconfirmed } from '../../../src/stores/errors.ts';
import { parseStoreSettings } from '../../../src/stores/settings.ts';
import { createRecordedLog } from '../../support/log.ts';
import { startSentinels, until } from '../../support/redis.ts';
import { newOwner, record } from '../catalog-store-suite.ts';

const setup = await startSentinels();
const env = { REDIS_SENTINELS: setup.addresses, REDIS_SENTINEL_NAME: 'umpire' };
const stores = await createStores(parseStoreSettings(env).value, createRecordedLog());
test.after.always(async () => {
  await stores.close();
  await setup.stop();
});

test.serial('a write waits for the replica where that is asked for, and says so when it cannot know', async (t) => {
  const waiting = await createStores(
    parseStoreSettings({ ...env, UMPIRE_REDIS_WAIT_REPLICAS: '1' }).value,
    createRecordedLog(),
  );
  t.teardown(() => waiting.close());
  const owner = newOwner();
  const creating = Array.from({ length: 20 }, (_, index) =>
    waiting.catalogs.create(owner, record(`c${index}`), 100, budget()),
  );
  t.true((await Promise.all(creating)).every(({ kind }) => kind === 'created'));
  t.is(Number(await setup.replica.command('SCARD', `umpire:{${owner}}:catalogs`)), 20);
  setup.replica.freeze();
  const started = performance.now();
  const unconfirmed = Array.from({ length: 5 }, (_, index) =>
    waiting.catalogs.create(owner, record(`d${index}`), 100, budget()),
  );
  for (const outcome of await Promise.allSettled(unconfirmed)) {
    t.true(outcome.status === 'rejected' && outcome.reason instanceof StoreWriteUnconfirmed);
  }
  t.true(performance.now() - started < 1_000);
  // Reads are on another line and do not wait behind the writes.
  t.truthy(await waiting.catalogs.read(owner, 'd0', budget()));
  setup.replica.thaw();
  await until(
    async () =>
      (await waiting.catalogs.create(owner, record(`e${performance.now()}`), 1_000, budget())).kind === 'created',
  );
});

test.serial('when the master is lost, the next one is found, with all that was confirmed by it', async (t) => {
  const owner = newOwner();
  await stores.catalogs.create(owner, record('before'), 10, budget());
  await until(async () => (await setup.replica.command('EXISTS', `umpire:{${owner}}:catalog:before`)) === 1);
  await setup.master.kill();
  await t.throwsAsync(stores.catalogs.read(owner, 'before', budget()), { instanceOf: StoreUnavailable });
  const recovery = await until(
    async () => (await stores.catalogs.read(owner, 'before', budget())) !== undefined,
    30_000,
  );
  t.is((await stores.catalogs.create(owner, record('after'), 10, budget())).kind, 'created');
  t.log(`failover: catalogs again after ${Math.round(recovery)} ms`);
});
