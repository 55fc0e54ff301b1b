/**
 * Cascades fitted to models that are known to be right as often as they are sure, and the thresholds that cost least.
 */
import test from 'ava';
import { type CascadeExample, fitCascade, type StepSaid } from '../../src/learning/cascade.ts';
import { cheapest } from '../../src/learning/costs.ts';
import type { JudgedAnswer } from '../../src/learning/quality.ts';
import { random } from '../support/random.ts';

const CHOICES = ['a', 'b', 'c'];

interface Model {
  readonly sharpness: number;
  readonly milliseconds: number;
  /** What its confidences are raised to: below 1 it is less sure than it is right. */
  readonly power?: number;
}

/** Examples of models that see a label through noise of their own: each is calibrated, but for its power. */
function examplesOf(count: number, models: readonly Model[], seed = 7): readonly CascadeExample[] {
  const next = random(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return Array.from({ length: count }, () => {
    const label = Math.floor(next() * 3);
    const said = models.map(({ sharpness, milliseconds, power = 1 }): StepSaid => {
      const seen = CHOICES.map((_, k) => (k === label ? sharpness : 0) + normal());
      const weights = seen.map((each) => Math.exp(sharpness * each * power));
      const sum = weights.reduce((total, each) => total + each, 0);
      return { probabilities: Float64Array.from(weights, (each) => each / sum), milliseconds, tokens: 10 };
    });
    return { choices: CHOICES, label, said };
  });
}

const SMALL = { sharpness: 1, milliseconds: 10 };
const LARGE = { sharpness: 3, milliseconds: 1000 };

test('a target is kept to, what is expected comes true on other examples, and confidence beats lots', (t) => {
  const fitted = fitCascade(examplesOf(1000, [SMALL, LARGE]), { shareOfLast: 0.3 });
  const { steps, apart, joined, isJoined, alone } = fitted;
  const expected = isJoined ? joined : apart;
  t.true(fitted.isMet && Math.abs((steps[1]?.reached ?? 0) - 0.3) < 0.05);
  t.true(expected.gain.low > 0, JSON.stringify(expected.gain));
  const [small, large] = alone.map(({ quality }) => quality.accuracy.share) as [number, number];
  const { share, low, high } = expected.quality.accuracy;
  t.true(small < share && share < large);
  // The same thresholds on examples that nobody has seen.
  const others = fitCascade(examplesOf(2000, [SMALL, LARGE], 8), { shareOfLast: 0.3 });
  const found = (isJoined ? others.joined : others.apart).quality.accuracy.share;
  t.true(low < found && found < high, `${low} ${found} ${high}`);
  t.true(
    fitted.curve.every(
      ({ figures }, i) =>
        i === 0 || figures.milliseconds.value >= (fitted.curve[i - 1]?.figures.milliseconds.value ?? 0),
    ),
  );
  t.deepEqual(fitCascade(examplesOf(1000, [SMALL, LARGE]), { shareOfLast: 0.3 }), fitted);
  // With any share it is as right as it can be; without a target it gives up some of that to be cheaper.
  const [dear, cheap] = [{ shareOfLast: 1 }, {}].map((target) => fitCascade(examplesOf(1000, [SMALL, LARGE]), target));
  t.true((dear?.steps[0]?.sure ?? 0) > (cheap?.steps[0]?.sure ?? 1));
});

test('three steps; the accuracy that is asked for at the least cost, or not met', (t) => {
  const examples = examplesOf(600, [SMALL, { sharpness: 2, milliseconds: 100 }, LARGE]);
  const { steps, isMet, apart, joined, isJoined } = fitCascade(examples, { accuracy: 0.9 });
  t.true(isMet && steps.length === 3);
  const { quality, milliseconds } = isJoined ? joined : apart;
  t.true(quality.accuracy.share > 0.85 && milliseconds.value < 800, JSON.stringify([quality.accuracy, milliseconds]));
  t.false(fitCascade(examplesOf(100, [SMALL, { ...SMALL, milliseconds: 99 }]), { accuracy: 0.99 }).isMet);
});

test('steps are joined where that makes answers better calibrated, and only there', (t) => {
  const unsure = { sharpness: 2, milliseconds: 100, power: 0.3 };
  const { isJoined, steps, joined, apart } = fitCascade(examplesOf(800, [{ ...SMALL, sharpness: 2 }, unsure]), {});
  t.true(isJoined);
  t.true(joined.quality.logLoss < apart.quality.logLoss);
  // The weight that undoes the power.
  t.true(Math.abs((steps[1]?.weights?.[1] ?? 0) - 1 / 0.3) < 0.7, JSON.stringify(steps));
  t.is(steps[0]?.weights, undefined);
  const copy = examplesOf(300, [LARGE]).map(({ said, ...rest }) => ({ ...rest, said: [...said, ...said] }));
  const twice = fitCascade(copy, {});
  t.false(twice.isJoined);
  // A second opinion that is the first one again is worth nothing.
  t.true(twice.apart.gain.low <= 0);
});

test('too few examples are refused', (t) => {
  t.throws(() => fitCascade(examplesOf(49, [SMALL, LARGE]), {}), { instanceOf: RangeError });
});

/** Answers of rising confidence; those above `from` are right, of those below every second one. */
const answers = (choice: string, from: number, count = 200): readonly JudgedAnswer[] =>
  Array.from({ length: count }, (_, i) => {
    const confidence = (i + 1) / count;
    const isRight = confidence > from || i % 2 === 0;
    return { label: isRight ? choice : 'other', choice, confidence, ofLabel: confidence };
  });

const CLASSES = ['a', 'b', 'other'];
const near = (value: number | undefined, expected: number, reach = 0.03) =>
  Math.abs((value ?? Number.NaN) - expected) <= reach;

test('each choice gets the threshold from which on acting saves', (t) => {
  const all = [...answers('a', 0.3), ...answers('b', 0.7)];
  const { thresholds, cost, actingOnAll, askingAlways } = cheapest(all, CLASSES, { person: 1, wrong: 10 });
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
  t.deepEqual(cheapest(all, CLASSES, { person: 1, wrong: 10 }), cheapest(all, CLASSES, { person: 1, wrong: 10 }));
});

test('where mistakes are cheap all is acted on, where a person is cheap nothing is', (t) => {
  const all = answers('a', 0.5);
  t.is(cheapest(all, CLASSES, { person: 9, wrong: 1 }).thresholds.get('a')?.value, 0.005);
  t.is(cheapest(all, CLASSES, { person: 0, wrong: 1 }).thresholds.get('a')?.value, Number.POSITIVE_INFINITY);
});

test('the first mistake that fits counts, and a choice with few answers follows the others', (t) => {
  const all = [...answers('a', 0.3), ...answers('b', 0.7, 10)];
  const mistakes = [
    { label: 'other', choice: 'a', cost: 0 },
    { choice: 'a', cost: 1000 },
  ];
  const { thresholds, actingOnAll } = cheapest(all, CLASSES, { person: 1, wrong: 10, mistakes });
  t.is(thresholds.get('a')?.value, 0.005);
  t.is(actingOnAll, (10 * all.filter(({ label, choice }) => label !== choice && choice === 'b').length) / all.length);
  t.is(thresholds.get('b')?.value, thresholds.get('other')?.value);
});
