/**
 * The contract as callers can try it: every check of `umpire conformance` against the real service, on the embedded
 * store and on Redis. `test/conformance` proves the checks; what a caller cannot bring about is tested beside this.
 */
import test from 'ava';
import { createCaller } from '../../conformance/caller.ts';
import { CHECKS } from '../../conformance/checks.ts';
import { createKit } from '../../conformance/kit.ts';
import { runChecks } from '../../conformance/run.ts';
import { createStoreBudget } from '../../src/stores/budget.ts';
import { issueKey } from '../support/keys.ts';
import { modelsDir } from '../support/models-dir.ts';
import { openEmbedded, openStores } from '../support/open-stores.ts';
import { startRedis } from '../support/redis.ts';
import { startService } from '../support/service.ts';

/** What one ready model with the contract's own limit of choices leaves untried; the mock has what they need. */
const UNTRIED = [
  'catalogs.model-limit-of-choices',
  'catalogs.other-model',
  'grpc.unavailable',
  'requests.disabled-model',
  'requests.model-limit-of-choices',
  'requests.unavailable-model',
];

for (const kind of ['sqlite', 'redis'] as const) {
  test.serial(`the service keeps every promise, on ${kind}`, async (t) => {
    t.timeout(180_000);
    const redis = kind === 'redis' ? await startRedis() : undefined;
    if (redis !== undefined) t.teardown(() => redis.stop());
    const stores = redis === undefined ? await openEmbedded() : await openStores({ REDIS_URL: redis.url });
    t.teardown(() => stores.close());
    const service = await startService({ UMPIRE_MODELS_DIR: modelsDir('minilm-l6') }, { stores });
    t.teardown(service.stop);
    const [{ key }, { key: otherKey }] = [await issueKey(stores, 'acme'), await issueKey(stores, 'umbrella')];
    const caller = createCaller({ url: new URL(service.url) });
    t.teardown(() => caller.close());
    const outcomes = await runChecks(CHECKS, createKit({ caller, key, otherKey }));
    t.deepEqual(
      outcomes
        .filter(({ kind }) => kind === 'failed')
        .map((outcome) => [outcome.check.id, 'reason' in outcome && outcome.reason]),
      [],
    );
    t.deepEqual(
      outcomes
        .filter(({ kind }) => kind === 'skipped')
        .map(({ check }) => check.id)
        .toSorted(),
      UNTRIED,
    );
    t.true(outcomes.length > 100);
    for (const owner of ['acme', 'umbrella'])
      t.deepEqual(await stores.catalogs.list(owner, createStoreBudget(5000)), [], 'nothing is left in it');
  });
}
