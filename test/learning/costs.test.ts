/** The thresholds that cost least, on answers whose best thresholds are known. */
import test from 'ava';
import { cheapest } from '../../src/learning/costs.ts';
import type { JudgedAnswer } from '../../src/learning/quality.ts';

/** Answers of rising confidence; those above `from` are right, of those below every second one. */
const answers = (choice: string, from: number, count = 200): readonly JudgedAnswer[] =>
  Array.from({ length: count }, (_, i) => {
    const confidence = (i + 1) / count;
    const isRight = confidence > from || i % 2 === 0;
    return { label: isRight ? choice : 'other', choice, confidence, ofLabel: confidence };
  });

const CHOICES = ['a', 'b', 'other'];
const near = (value: number | undefined, expected: number, reach = 0.03) =>
  Math.abs((value ?? Number.NaN) - expected) <= reach;

test('each choice gets the threshold from which on acting saves', (t) => {
  const all = [...answers('a', 0.3), ...answers('b', 0.7)];
  const { thresholds, cost, actingOnAll, askingAlways } = cheapest(all, CHOICES, { person: 1, wrong: 10 });
  t.true(near(thresholds.get('a')?.value, 0.3));
  t.true(near(thresholds.get('b')?.value, 0.7));
  for (const choice of ['a', 'b']) {
    const { value, low, high } = thresholds.get(choice) ?? { value: 0, low: 1, high: 0 };
    t.true(low <= value && value <= high && high - low < 0.2);
  }
  // Half of the texts goes to a person, at 1 each; the others are right.
  t.true(near(cost.value, 0.5, 0.1), String(cost.value));
  t.true(cost.low < cost.value && cost.value < cost.high);
  t.is(actingOnAll, (10 * all.filter(({ label, choice }) => label !== choice).length) / all.length);
  t.is(askingAlways, 1);
  t.deepEqual(cheapest(all, CHOICES, { person: 1, wrong: 10 }), cheapest(all, CHOICES, { person: 1, wrong: 10 }));
});

test('where mistakes are cheap all is acted on, where a person is cheap nothing is', (t) => {
  const all = answers('a', 0.5);
  t.is(cheapest(all, CHOICES, { person: 9, wrong: 1 }).thresholds.get('a')?.value, 0.005);
  t.is(cheapest(all, CHOICES, { person: 0, wrong: 1 }).thresholds.get('a')?.value, Number.POSITIVE_INFINITY);
});

test('the first mistake that fits counts, and a choice with few answers follows the others', (t) => {
  const all = [...answers('a', 0.3), ...answers('b', 0.7, 10)];
  const mistakes = [
    { label: 'other', choice: 'a', cost: 0 },
    { choice: 'a', cost: 1000 },
  ];
  const { thresholds, actingOnAll } = cheapest(all, CHOICES, { person: 1, wrong: 10, mistakes });
  t.is(thresholds.get('a')?.value, 0.005);
  t.is(actingOnAll, (10 * all.filter(({ label, choice }) => label !== choice && choice === 'b').length) / all.length);
  t.is(thresholds.get('b')?.value, thresholds.get('other')?.value);
});
