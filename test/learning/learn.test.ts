/** What is learned from examples: against cases whose answer is known, and against chance. */
import test from 'ava';
import { Learned } from '../../src/domain/learned.ts';
import { climb, fitTemperature, isStratified } from '../../src/learning/ladder.ts';
import { minimise } from '../../src/learning/lbfgs.ts';
import { learn } from '../../src/learning/learn.ts';
import { timesTransposed } from '../../src/learning/matrix.ts';
import { qualityOf, wilson } from '../../src/learning/quality.ts';
import { fitParameters, regressionData, type ScoredExample } from '../../src/learning/regression.ts';
import { random } from '../support/random.ts';

const WIDTH = 8;
const CHOICES = ['a', 'b', 'c'];

/**
 * Texts around a direction for each choice; the model gives `sure` to the right one in the share `hits` of cases,
 * else to the next.
 */
function examplesOf(
  count: number,
  { noise = 0.3, sure = 0.5, hits = 0.5, informative = true, seed = 1 } = {},
): readonly ScoredExample[] {
  const next = random(seed);
  return Array.from({ length: count }, (_, i) => {
    const label = i % CHOICES.length;
    const vector = Float32Array.from(
      { length: WIDTH },
      (_, j) => (informative && j === label ? 1 : 0) + noise * (next() - 0.5),
    );
    const length = Math.hypot(...vector);
    const said = next() < hits ? label : (label + 1) % CHOICES.length;
    const probabilities = Float64Array.from(CHOICES, (_, k) => (k === said ? sure : (1 - sure) / 2));
    return { label, vector: vector.map((value) => value / length), probabilities };
  });
}

const FACTS = { model: 'm@r1', basis: 'basis' };
const now = new Date(0);

test('products of matrices of odd sizes', (t) => {
  const next = random(3);
  const [rows, columns, inner] = [5, 7, 3];
  const a = Float64Array.from({ length: rows * inner }, next);
  const b = Float64Array.from({ length: columns * inner }, next);
  const out = new Float64Array(rows * columns);
  timesTransposed(a, b, out, { rows, columns, inner });
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < columns; k++) {
      let sum = 0;
      for (let j = 0; j < inner; j++) sum += (a[i * inner + j] as number) * (b[k * inner + j] as number);
      t.true(Math.abs((out[i * columns + k] as number) - sum) < 1e-12);
    }
  }
});

test('the minimum of a badly scaled quadratic is found', (t) => {
  const scales = Float64Array.of(1, 100, 0.01);
  const at = new Float64Array(3);
  const value = minimise(
    (x, gradient) => {
      let sum = 0;
      for (let i = 0; i < 3; i++) {
        const d = (x[i] as number) - (i + 1);
        gradient[i] = 2 * (scales[i] as number) * d;
        sum += (scales[i] as number) * d * d;
      }
      return sum;
    },
    at,
    { curvature: new Float64Array(3).fill(1), mostSteps: 100, tolerance: 1e-14 },
  );
  t.true(value < 1e-10);
  for (let i = 0; i < 3; i++) t.true(Math.abs((at[i] as number) - (i + 1)) < 1e-3);
});

test('a bias without weights comes to the frequencies, less what the pull keeps', (t) => {
  const labels = [0, 0, 0, 1];
  const data = regressionData(
    labels.map((label) => ({ label, probabilities: Float64Array.of(0.5, 0.5), vector: undefined })),
  );
  const [, first = 0, second = 0] = fitParameters(data, new Int32Array(4).fill(1), { scale: 1, bias: 1e-6 });
  t.true(Math.abs(Math.exp(first) / (Math.exp(first) + Math.exp(second)) - 0.75) < 1e-2);
  const [, held = 1] = fitParameters(data, new Int32Array(4).fill(1), { scale: 1, bias: 1e6 });
  t.true(Math.abs(held) < 1e-5);
});

test('texts that tell their choices apart teach weights, which decide texts that were not seen', (t) => {
  const { record, rungs, before, after } = learn(examplesOf(60), CHOICES, FACTS, now);
  t.is(record?.rung, 'weights');
  t.true(rungs.at(-1)?.taken);
  t.true(after.accuracy.share > before.accuracy.share + 0.2);
  const learned = new Learned(record as NonNullable<typeof record>);
  const unseen = examplesOf(60, { seed: 9 });
  const right = unseen.filter(({ probabilities, vector, label }) => {
    const decided = learned.decide(probabilities, vector);
    return decided.indexOf(Math.max(...decided)) === label;
  });
  t.true(right.length > 55, `${right.length} of 60`);
  t.deepEqual(record?.examples, [20, 20, 20]);
});

test('the same examples teach the same, bit for bit', (t) => {
  t.deepEqual(learn(examplesOf(40), CHOICES, FACTS, now), learn(examplesOf(40), CHOICES, FACTS, now));
});

test('where labels follow from nothing, weights are learned from hardly any examples', (t) => {
  const taken = Array.from({ length: 200 }, (_, place) => place + 1).filter((seed) => {
    const noise = examplesOf(24, { informative: false, hits: 1 / 3, sure: 0.34, seed });
    return learn(noise, CHOICES, FACTS, now).record?.rung === 'weights';
  });
  t.true(taken.length <= 4, `seeds ${taken}`);
});

test('a model that is too sure gets a temperature, and keeps its answers', (t) => {
  const tooSure = examplesOf(90, { informative: false, sure: 0.98, hits: 0.7 }).map((each) => ({
    ...each,
    vector: undefined,
  }));
  const { record, before, after } = learn(tooSure, CHOICES, FACTS, now);
  t.is(record?.rung, 'temperature');
  t.true((record?.scale ?? 1) < 0.6);
  t.true(after.logLoss < before.logLoss - 0.2);
  t.is(after.accuracy.share, before.accuracy.share);
});

test('how often a choice comes is learned from examples as they come, not from as many of each', (t) => {
  const of = (labels: readonly number[]) =>
    regressionData(labels.map((label) => ({ label, probabilities: Float64Array.of(0.4, 0.6), vector: undefined })));
  const natural = of(Array.from({ length: 60 }, (_, i) => (i % 6 === 0 ? 1 : 0)));
  t.false(isStratified(natural));
  t.is(climb(natural).rung, 'bias');
  const even = of(Array.from({ length: 60 }, (_, i) => i % 2));
  t.true(isStratified(even));
  t.false(climb(even).rungs.some(({ rung }) => rung === 'bias'));
});

test('a choice without examples keeps its place', (t) => {
  const data = examplesOf(60).filter(({ label }) => label !== 2);
  const { record } = learn(data, CHOICES, FACTS, now);
  const learned = new Learned(record as NonNullable<typeof record>);
  const third = examplesOf(3).find(({ label }) => label === 2)?.vector;
  const decided = learned.decide(Float64Array.of(0.01, 0.01, 0.98), third);
  t.is(decided.indexOf(Math.max(...decided)), 2);
});

test('a vector of another length does not decide', (t) => {
  const { record } = learn(examplesOf(60), CHOICES, FACTS, now);
  const learned = new Learned(record as NonNullable<typeof record>);
  for (const vector of [undefined, new Float32Array(WIDTH - 1)]) {
    t.throws(() => learned.decide(Float64Array.of(0.2, 0.3, 0.5), vector), { message: /does not fit its model/ });
  }
});

test('a learned decision among 300 choices takes a fraction of a millisecond, and its state half a mebibyte at most', (t) => {
  const many = Array.from({ length: 300 }, (_, k) => `choice ${k}`);
  const next = random(5);
  const width = 384;
  const examples = many.slice(0, 12).map((_, label) => ({
    label,
    probabilities: Float64Array.from(many, (_, k) => (k === label ? 0.003 : 0.997 / 299)),
    vector: Float32Array.from({ length: width }, (_, j) => (j === label ? 1 : 0.01 * next())),
  }));
  const { record } = learn([...examples, ...examples, ...examples], many, FACTS, now);
  t.true(record !== undefined);
  t.true(JSON.stringify(record).length <= 512 * 1024);
  const learned = new Learned(record as NonNullable<typeof record>);
  const { probabilities, vector } = examples[0] as (typeof examples)[number];
  for (let i = 0; i < 200; i++) learned.decide(probabilities, vector);
  const began = process.cpuUsage();
  for (let i = 0; i < 500; i++) learned.decide(probabilities, vector);
  const { user, system } = process.cpuUsage(began);
  t.true((user + system) / 500 < 400, `${(user + system) / 500} µs`);
});

test('Wilson intervals and thresholds of a known table', (t) => {
  const { low, high } = wilson(81, 100);
  t.true(Math.abs(low - 0.722) < 0.001 && Math.abs(high - 0.875) < 0.001);
  const answers = Array.from({ length: 100 }, (_, i) => ({
    label: i < 50 || i % 2 === 0 ? 'x' : 'y',
    choice: 'x',
    confidence: 1 - i / 100,
    ofLabel: 0.5,
  }));
  const quality = qualityOf(answers);
  const [, ninety] = quality.thresholds;
  // 62 answers of which 6 are wrong are the last at 90 %.
  t.true((ninety?.found?.accuracy.share ?? 0) >= 0.9);
  t.true(Math.abs((ninety?.found?.coverage ?? 0) - 0.62) < 0.02);
  t.deepEqual(
    quality.confusions.map(({ label, choice, count }) => [label, choice, count]),
    [['y', 'x', 25]],
  );
});

const softmax = (logits: readonly number[]): Float64Array => {
  const powers = Float64Array.from(logits, Math.exp);
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
};

/** Examples whose labels are drawn from the logits at a temperature, as the model says them at 1. */
function examplesAt(temperature: number, count: number) {
  const next = random(1);
  return Array.from({ length: count }, () => {
    const logits = Array.from({ length: 5 }, () => 6 * temperature * (next() - 0.5));
    const drawn = softmax(logits.map((logit) => logit / temperature));
    let rest = next();
    const label = drawn.findIndex((p) => {
      rest -= p;
      return rest <= 0;
    });
    return { probabilities: softmax(logits), label: label === -1 ? 4 : label };
  });
}

for (const temperature of [0.05, 1, 8]) {
  test(`the temperature ${temperature} is found again`, (t) => {
    const found = fitTemperature(examplesAt(temperature, 4000), 1);
    t.true(Math.abs(found / temperature - 1) < 0.06, `${found}`);
  });
}

test('where every answer is right, it goes no farther from the usual one than the examples outweigh it', (t) => {
  const right = Array.from({ length: 20 }, () => ({ probabilities: softmax([2, 0, 0]), label: 0 }));
  const found = fitTemperature(right, 1);
  t.true(found > 0.2 && found < 1, `${found}`);
  t.true(Math.abs(fitTemperature([], 0.05) - 0.05) < 1e-6);
});

test('a probability of 0 under the label makes it great, not infinite', (t) => {
  const found = fitTemperature([{ probabilities: Float64Array.of(1, 0), label: 1 }], 1);
  t.true(Number.isFinite(found) && found > 1);
});
