/**
 * Every check of the kit is proven: the mock passes it, and for each there is a service that breaks just that promise,
 * which the kit reports under that check and no other, or a refusal that it misses. A check without either fails here.
 */
import anyTest, { type TestFn } from 'ava';
import type { Answer } from '../../conformance/answer.ts';
import { createCaller } from '../../conformance/caller.ts';
import { CHECKS } from '../../conformance/checks.ts';
import { mintKey } from '../../src/domain/keys.ts';
import { startTestMock } from '../support/mock.ts';
import { type Change, CONNECT_REFUSALS, on, WRONG_REFUSALS, WRONG_STATUSES } from './breaking.ts';
import { brokenCatalogs } from './broken-catalogs.ts';
import { BROKEN_DECISIONS } from './broken-decisions.ts';
import { BROKEN_RPCS } from './broken-rpcs.ts';
import { type Recording, record, type SeenRequest } from './tape.ts';

const KEYS = { key: mintKey(), otherKey: mintKey() };
const ROWS = [...BROKEN_DECISIONS, ...brokenCatalogs(`Bearer ${KEYS.otherKey}`), ...BROKEN_RPCS];

/** Checks of what every answer carries, whatever it says, or of less than a refusal has; each has its row. */
const OF_ALL = /^(routes\.head|answers\.|grpc\.request-id|keys\.challenge|connect\.unknown-property)/;

/** Checks of a status alone. */
const OF_STATUS = /^grpc\.(deadline|health-unknown)$/;

/** What may become of an answer if it is a refusal. Of one without a body only that it is made is judged everywhere. */
function wrongRefusals({ headers, trailers, status, body }: Answer, { method }: SeenRequest): readonly Change[] {
  if (/^application\/grpc/.test(String(headers['content-type'])))
    return Number(trailers['grpc-status']) > 0 ? WRONG_STATUSES : [];
  // A check's catalogs are deleted behind it.
  if (status < 400 || method === 'DELETE' || body.length === 0) return [];
  if ('details' in JSON.parse(body.toString())) return CONNECT_REFUSALS;
  return method === 'GET' ? WRONG_REFUSALS.slice(0, 1) : WRONG_REFUSALS;
}

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

test('ids are unique and say where they belong', (t) => {
  const ids = CHECKS.map(({ id }) => id);
  t.deepEqual(ids, [...new Set(ids)]);
  for (const id of ids) t.regex(id, /^[a-z]+\.[a-z0-9-]+$/);
});

test('a refusal that is not made, or is of another kind, breaks its check', async (t) => {
  const { tapes, replayOne } = t.context;
  const proven = new Set<string>();
  const missed: string[] = [];
  for (const { check, tape } of tapes.filter(({ check }) => !OF_ALL.test(check.id))) {
    for (const [place, { seen, answer }] of tape.entries()) {
      for (const [number, change] of wrongRefusals(answer, seen).entries()) {
        if (number > 0 && OF_STATUS.test(check.id)) continue;
        const { kind } = await replayOne(check, place, change(answer, seen));
        if (kind !== 'failed')
          missed.push(`${check.id}: request ${place}, ${seen.method} ${seen.path}, change ${number}`);
        proven.add(check.id);
      }
    }
  }
  t.deepEqual(missed, []);
  const ids = CHECKS.map(({ id }) => id);
  t.deepEqual([...new Set([...proven, ...ROWS.map(([id]) => id)])].toSorted(), ids.toSorted(), 'every check is proven');
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
