/** What the map of vectors brings out, and that nothing but the fit's pull depends on it. */
import test from 'ava';
import { Learned } from '../../src/domain/learned.ts';
import { beforeMap, contrasted } from '../../src/learning/contrast.ts';
import { learn } from '../../src/learning/learn.ts';
import { cholesky, inverseOfLower, timesTransposed, transposed } from '../../src/learning/matrix.ts';
import { fitParameters, logitsOf, regressionData, type ScoredExample } from '../../src/learning/regression.ts';
import { random } from '../support/random.ts';

const WIDTH = 48;
const CHOICES = ['a', 'b', 'c', 'd'];
const LOUD = [8, 9, 10, 11, 12, 13];

/** A quiet direction for each choice, and loud ones that say nothing; the model knows nothing. */
function examplesOf(count: number, seed: number): readonly ScoredExample[] {
  const next = random(seed);
  return Array.from({ length: count }, (_, i) => {
    const label = i % CHOICES.length;
    const values = Array.from(
      { length: WIDTH },
      (_, j) => (j === label ? 0.25 : 0) + (LOUD.includes(j) ? 1.2 : 0.2) * (next() - 0.5),
    );
    const length = Math.hypot(...values);
    const probabilities = Float64Array.from(CHOICES, () => 1 / CHOICES.length);
    return { label, vector: Float32Array.from(values, (value) => value / length), probabilities };
  });
}

function dataOf(examples: readonly ScoredExample[], labels = examples.map(({ label }) => label)) {
  return regressionData(examples.map((each, i) => ({ ...each, label: labels[i] as number })));
}

const all = (count: number): Int32Array => new Int32Array(count).fill(1);

test('a triangle times its transpose is the matrix, and times its inverse nothing but ones', (t) => {
  const [size, next] = [5, random(7)];
  const rows = Float64Array.from({ length: size * size }, next);
  const square = { rows: size, columns: size, inner: size };
  const [matrix, again, one] = [0, 0, 0].map(() => new Float64Array(size * size)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  timesTransposed(rows, rows, matrix, square);
  for (let j = 0; j < size; j++) matrix[j * size + j] = (matrix[j * size + j] as number) + 1;
  const lower = cholesky(matrix, size);
  timesTransposed(lower, lower, again, square);
  timesTransposed(lower, transposed(inverseOfLower(lower, size), size, size), one, square);
  for (let place = 0; place < size * size; place++) {
    t.true(Math.abs((again[place] as number) - (matrix[place] as number)) < 1e-12);
    t.true(Math.abs((one[place] as number) - (place % (size + 1) === 0 ? 1 : 0)) < 1e-12);
  }
});

test('directions in which the examples of a choice differ are made short, those in which choices do long', (t) => {
  const examples = examplesOf(200, 1);
  const { map } = contrasted(dataOf(examples), all(examples.length));
  const stretch = (j: number): number =>
    Math.hypot(...Array.from({ length: WIDTH }, (_, row) => map[row * WIDTH + j] as number));
  const loudest = Math.max(...LOUD.map(stretch));
  const others = Array.from({ length: WIDTH }, (_, j) => j).filter((j) => j >= CHOICES.length && !LOUD.includes(j));
  for (const j of others) t.true(stretch(j) > 2 * loudest, `${j}: ${stretch(j)}`);
  const mean = (all: readonly number[]): number => all.reduce((sum, each) => sum + each, 0) / all.length;
  t.true(mean(CHOICES.map((_, j) => stretch(j))) > 1.2 * mean(others.map(stretch)));
});

test('weights behind the map are the same decisions as weights before it', (t) => {
  const examples = examplesOf(40, 2);
  const data = dataOf(examples);
  const contrast = contrasted(data, all(40));
  const fitted = fitParameters(contrast.data, all(40), { scale: 1, weights: 0.1, bias: 1 });
  const [behind, before] = [logitsOf(contrast.data, fitted), logitsOf(data, beforeMap(contrast, fitted))];
  for (const [place, value] of behind.entries()) t.true(Math.abs(value - (before[place] as number)) < 1e-9);
});

test('an example that does not count tells the map nothing', (t) => {
  const examples = examplesOf(40, 3);
  const labels = examples.map(({ label }) => label);
  const counts = all(40).fill(0, 30);
  const others = labels.map((label, i) => (i < 30 ? label : (label + 1) % CHOICES.length));
  t.deepEqual(contrasted(dataOf(examples, others), counts).map, contrasted(dataOf(examples, labels), counts).map);
});

test('one example of each choice, and examples that are all alike, leave vectors as they are', (t) => {
  const few = examplesOf(4, 4);
  const { map } = contrasted(dataOf(few), all(4));
  t.true(map.every(Number.isFinite));
  const alike = few.map((each) => ({ ...each, vector: (few[0] as ScoredExample).vector }));
  const even = contrasted(dataOf(alike), all(4)).map;
  for (const [place, value] of even.entries())
    t.true(Math.abs(value - (place % (WIDTH + 1) === 0 ? (even[0] as number) : 0)) < 1e-12);
});

test('loud directions that say nothing do not drown quiet ones that do', (t) => {
  const rights = [11, 12, 13, 14].map((seed) => {
    const { record } = learn(examplesOf(64, seed), CHOICES, { model: 'm@r1', basis: 'basis' }, new Date(0));
    const learned = new Learned(record as NonNullable<typeof record>);
    return examplesOf(400, 100 + seed).filter(({ probabilities, vector, label }) => {
      const decided = learned.decide(probabilities, vector);
      return decided.indexOf(Math.max(...decided)) === label;
    }).length;
  });
  t.true(rights.reduce((sum, each) => sum + each, 0) > 1550, `${rights} of 400 each`);
});
