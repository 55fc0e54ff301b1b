/**
 * What an owner may do with catalogs. The store is real; the engine stands in for one, with a limit of 5
 * letters a choice.
 */
import test from 'ava';
import { Call } from '../../src/domain/call.ts';
import { CatalogCache } from '../../src/domain/catalog-cache.ts';
import { Catalogs, type CatalogsOptions } from '../../src/domain/catalogs.ts';
import { DomainError } from '../../src/domain/errors.ts';
import type { ModelRevision, ModelStatus } from '../../src/engine/engine.ts';
import { EngineOverloaded } from '../../src/engine/errors.ts';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import { UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../../src/stores/stores.ts';
import { newOwner, record } from '../stores/catalog-store-suite.ts';
import { openEmbedded } from '../support/open-stores.ts';

const stores = await openEmbedded();
test.after.always(() => stores.close());

const revision = (id: string, name: string, isDefault: boolean, status: ModelStatus): ModelRevision => ({
  id,
  revision: name,
  isDefault,
  ownedBy: 'umpire',
  status,
  limits: { inputTokens: 100, candidateTokens: 5, choices: 4 },
});
const MODELS = [
  revision('broken', 'r1', true, 'unavailable'),
  revision('old', 'r1', true, 'disabled'),
  revision('small', 'r1', false, 'ready'),
  revision('small', 'r2', true, 'ready'),
];

function start(options: Partial<CatalogsOptions> = {}) {
  const prepared: unknown[] = [];
  const catalogs = new Catalogs({
    store: stores.catalogs,
    bounds: { catalogs: 3, bytes: 1_000 },
    engine: {
      models: () => MODELS,
      async prepare(job) {
        prepared.push(job);
        const long = job.choices.find((choice) => choice.length > 5);
        return long === undefined
          ? { kind: 'prepared' }
          : { kind: 'choice_too_long', choice: long, tokens: long.length, limit: 5 };
      },
    },
    ...options,
  });
  return { catalogs, prepared, owner: newOwner() };
}

const fault = async (work: Promise<unknown>) => {
  try {
    await work;
  } catch (error) {
    if (error instanceof DomainError) return { reason: error.reason, param: error.param, retryAfter: error.retryAfter };
    throw error;
  }
  return undefined;
};
const DRAFT = { id: 'a', model: 'small', choices: ['b', 'a'] };

test('a new catalog has its defaults, is encoded in code-unit order for the default revision, and is read back', async (t) => {
  const { catalogs, prepared, owner } = start();
  const expected = { ...DRAFT, version: '1', visibility: 'private' };
  t.deepEqual(await catalogs.create(owner, DRAFT, new Call(60_000)), expected);
  t.deepEqual(prepared, [{ model: 'small', revision: 'r2', choices: ['a', 'b'] }]);
  t.like(await catalogs.get(owner, 'a', budget()), expected);
  t.deepEqual(await catalogs.resolve(owner, 'a', budget()), { model: 'small', sortedChoices: ['a', 'b'] });
});

for (const [title, change, expected] of [
  ['a bad id', { id: 'a/b' }, { reason: 'INVALID_CATALOG_ID', param: 'id' }],
  ['bad choices', { choices: ['a'] }, { reason: 'INVALID_CHOICES', param: 'choices' }],
  ['a bad version', { version: 'x'.repeat(129) }, { reason: 'INVALID_VALUE', param: 'version' }],
  ['a bad visibility', { visibility: 'public' }, { reason: 'INVALID_VALUE', param: 'visibility' }],
  ['an unknown model', { model: 'nobody' }, { reason: 'UNKNOWN_MODEL', param: 'model' }],
  ['a qualified model', { model: 'small@r2' }, { reason: 'UNKNOWN_MODEL', param: 'model' }],
  ['a disabled model', { model: 'old' }, { reason: 'MODEL_DISABLED', param: 'model' }],
  ['an unavailable model', { model: 'broken' }, { reason: 'MODEL_UNAVAILABLE', param: 'model', retryAfter: 2 }],
  ['too many choices', { choices: ['a', 'b', 'c', 'd', 'e'] }, { reason: 'TOO_MANY_CHOICES', param: 'choices' }],
  [
    'a choice that is too long',
    { choices: ['a', 'bcdefg'] },
    { reason: 'CANDIDATE_TOKENS_EXCEEDED', param: 'choices' },
  ],
] as const) {
  test(`refused: ${title}`, async (t) => {
    const { catalogs, owner } = start();
    t.deepEqual(await fault(catalogs.create(owner, { ...DRAFT, ...change }, new Call(60_000))), {
      retryAfter: undefined,
      ...expected,
    });
    t.deepEqual(await stores.catalogs.list(owner, budget()), []);
  });
}

test('an id that exists is refused before its choices are encoded', async (t) => {
  const { catalogs, prepared, owner } = start();
  await catalogs.create(owner, DRAFT, new Call(60_000));
  t.like(await fault(catalogs.create(owner, DRAFT, new Call(60_000))), {
    reason: 'CATALOG_ALREADY_EXISTS',
    param: 'id',
  });
  t.is(prepared.length, 1);
});

test('failures of the store and the engine are what a caller may see', async (t) => {
  const failing = (error: Error) => () => Promise.reject(error);
  for (const [error, reason] of [
    [new StoreUnavailable('away', { retryAfter: 3 }), 'STORE_UNAVAILABLE'],
    [new StoreCorrupt('broken'), 'STORAGE_CORRUPT'],
    [new StoreWriteUnconfirmed('who knows'), 'STORE_WRITE_UNCONFIRMED'],
  ] as const) {
    const methods = {
      create: failing(error),
      read: failing(error),
      stamp: async () => undefined,
      replace: failing(error),
      examples: failing(error),
      delete: failing(error),
      list: failing(error),
      owners: failing(error),
    };
    const { catalogs, owner } = start({ store: methods });
    for (const work of [
      catalogs.create(owner, DRAFT, new Call(60_000)),
      catalogs.get(owner, 'a', budget()),
      catalogs.delete(owner, 'a', budget()),
      catalogs.resolve(owner, 'a', budget()),
    ]) {
      t.is((await fault(work))?.reason, reason);
    }
  }
  const { catalogs, owner } = start({ engine: { models: () => MODELS, prepare: failing(new EngineOverloaded(4)) } });
  t.like(await fault(catalogs.create(owner, DRAFT, new Call(60_000))), { reason: 'OVERLOADED', retryAfter: 4 });
});

function startCache() {
  const state = { now: 0, reads: 0, stamps: 0, away: false };
  const check = (): void => {
    if (state.away) throw new StoreUnavailable('away');
  };
  const cache = new CatalogCache(
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
  const { cache, state, owner } = startCache();
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

test('what this process did is seen at once, also by a look-up that was under way', async (t) => {
  const { cache, owner } = startCache();
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  const underWay = cache.resolve(owner, 'a', budget());
  await stores.catalogs.delete(owner, 'a', budget());
  cache.forget(owner, 'a');
  await underWay;
  t.is(await cache.resolve(owner, 'a', budget()), undefined);
});

test('what is not there is not remembered', async (t) => {
  const { cache, owner } = startCache();
  t.is(await cache.resolve(owner, 'a', budget()), undefined);
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  t.truthy(await cache.resolve(owner, 'a', budget()));
});

test('many decisions at once ask once', async (t) => {
  const { cache, state, owner } = startCache();
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  await Promise.all(Array.from({ length: 20 }, () => cache.resolve(owner, 'a', budget())));
  t.is(state.reads, 1);
});

test('a copy does not outlive its second because the store is away', async (t) => {
  const { cache, state, owner } = startCache();
  await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
  await cache.resolve(owner, 'a', budget());
  state.away = true;
  state.now = 700;
  t.truthy(await cache.resolve(owner, 'a', budget()));
  state.now = 1_000;
  await t.throwsAsync(cache.resolve(owner, 'a', budget()), { instanceOf: StoreUnavailable });
});
