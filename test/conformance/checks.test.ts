/**
 * Every check of the kit is proven: the mock passes it, and for each there is a service that breaks just that promise,
 * which the kit reports under that check and no other. A check without such a service fails here.
 */
import anyTest, { type TestFn } from 'ava';
import { createCaller } from '../../conformance/caller.ts';
import { CHECKS } from '../../conformance/checks.ts';
import { mintKey } from '../../src/domain/keys.ts';
import { startTestMock } from '../support/mock.ts';
import { on } from './breaking.ts';
import { brokenCatalogs } from './broken-catalogs.ts';
import { BROKEN_DECISIONS } from './broken-decisions.ts';
import { BROKEN_REQUESTS } from './broken-requests.ts';
import { BROKEN_RPCS } from './broken-rpcs.ts';
import { type Recording, record } from './tape.ts';

const KEYS = { key: mintKey(), otherKey: mintKey() };
const ROWS = [...BROKEN_DECISIONS, ...BROKEN_REQUESTS, ...brokenCatalogs(`Bearer ${KEYS.otherKey}`), ...BROKEN_RPCS];

const test = anyTest as TestFn<Recording>;

test.before(async (t) => {
  const mock = await startTestMock({
    models: [
      { id: 'mock', revision: 'r1', status: 'ready' },
      { id: 'second', revision: 'r1', status: 'ready' },
      { id: 'gone', revision: 'r1', status: 'unavailable' },
      { id: 'off', revision: 'r1', status: 'disabled' },
    ],
    // Fewer choices than the contract allows, so that the model's own limit shows, too.
    limits: { inputTokens: 256, candidateTokens: 64, choices: 250 },
    keys: { mock: KEYS.key, other: KEYS.otherKey },
  });
  const caller = createCaller({ url: new URL(mock.url) });
  t.context = await record(CHECKS, caller, KEYS);
  caller.close();
  await mock.stop();
});

test('the mock keeps every promise, and none is left untried', (t) => {
  t.true(t.context.outcomes.length > 100);
  t.deepEqual(
    t.context.outcomes
      .filter(({ kind }) => kind !== 'passed')
      .map((outcome) => [outcome.check.id, 'reason' in outcome && outcome.reason]),
    [],
  );
});

test('the answers as they were recorded pass, too', async (t) => {
  t.deepEqual(await t.context.replay(() => undefined), new Map());
});

test('ids are unique and say where they belong; every check has its breakages, and every breakage its check', (t) => {
  const ids = CHECKS.map(({ id }) => id);
  t.deepEqual(ids, [...new Set(ids)]);
  for (const id of ids) t.regex(id, /^[a-z]+\.[a-z0-9-]+$/);
  t.deepEqual([...new Set(ROWS.map(([check]) => check))].toSorted(), ids.toSorted());
});

for (const [place, [check, when, changes, also = []]] of ROWS.entries()) {
  test.serial(`broken: ${check}, row ${place}`, async (t) => {
    for (const [number, change] of [changes].flat().entries()) {
      const failed = await t.context.replay(on(when, change));
      const told = `change ${number}: ${JSON.stringify([...failed])}`;
      t.deepEqual([...failed.keys()].toSorted(), [check, ...also].toSorted(), told);
    }
  });
}
