/** Stages from the times that an exchange noted. */
import test from 'ava';
import type { CallFacts, CallTimes } from '../../../src/domain/call.ts';
import type { Exchange } from '../../../src/wire/http/exchange.ts';
import { type Stage, stagesOf } from '../../../src/wire/traces/describe.ts';

/** As far as stages look at it. */
const exchange = (
  times: CallTimes,
  calls: readonly { start: number; end: number }[] = [],
  facts: CallFacts = {},
): Exchange =>
  ({ startedAt: 100, facts, times, storeBudget: { remaining: 0, calls }, record: { endedAt: 200 } }) as Exchange;

const flat = (stages: readonly Stage[], above = ''): readonly string[] =>
  stages.flatMap(({ name, start, end, inner }) => [
    `${above}${name} ${start}–${end}`,
    ...flat(inner, `${above}${name}/`),
  ]);

test('a request that was not admitted has no stages but its store calls', (t) => {
  t.deepEqual(flat(stagesOf(exchange({}))), []);
  t.deepEqual(flat(stagesOf(exchange({}, [{ start: 110, end: 120 }]))), ['store 110–120']);
});

test('one that failed in decoding spent the rest of its time there', (t) => {
  t.deepEqual(flat(stagesOf(exchange({ admittedAt: 110 }))), ['admission 100–110', 'decode 110–200']);
});

test("messages to the engine and back take what the engine's stages leave, half each", (t) => {
  const decided = exchange(
    { admittedAt: 110, invokedAt: 120, engineSince: 130, engineUntil: 190 },
    [
      { start: 101, end: 105 },
      { start: 121, end: 129 },
    ],
    { timings: { queue: 10, tokenize: 4, infer: 40 } },
  );
  t.deepEqual(flat(stagesOf(decided)), [
    'admission 100–110',
    'admission/store 101–105',
    'decode 110–120',
    'store 121–129',
    'engine 130–190',
    'engine/queue 130–140',
    'engine/tokenize 143–147',
    'engine/infer 147–187',
  ]);
});

test('nothing lies outside its parent, whatever the clocks said', (t) => {
  const odd = exchange(
    // The caller left before the engine was done.
    { admittedAt: 110, invokedAt: 120, engineSince: 130, engineUntil: 300 },
    [{ start: 190, end: 230 }],
    { timings: { queue: 50, tokenize: 50, infer: 50 } },
  );
  t.deepEqual(flat(stagesOf(odd)), [
    'admission 100–110',
    'decode 110–120',
    'store 190–200',
    'engine 130–200',
    'engine/queue 130–180',
    'engine/tokenize 180–200',
    'engine/infer 200–200',
  ]);
  const running = exchange({ admittedAt: 110, invokedAt: 120, engineSince: 130 });
  t.deepEqual(flat(stagesOf(running)).at(-1), 'engine 130–200');
});
