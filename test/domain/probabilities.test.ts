import test from 'ava';
import fc from 'fast-check';
import { roundDistribution } from '../../src/domain/probabilities.ts';

const weights = fc
  .array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 300 })
  .filter((values) => values.reduce((sum, value) => sum + value, 0) > 1e-290);
/** As an engine's softmax gives them: many orders of magnitude apart. */
const softmaxed = fc
  .array(fc.double({ min: -700, max: 0, noNaN: true }), { minLength: 1, maxLength: 300 })
  .map((logits) => {
    const highest = Math.max(...logits);
    const exponents = logits.map((logit) => Math.exp(logit - highest));
    const sum = exponents.reduce((total, value) => total + value, 0);
    return exponents.map((value) => value / sum);
  });
const distributions = fc.oneof(weights, softmaxed);

const millionths = (probabilities: Float64Array): readonly number[] =>
  Array.from(probabilities, (probability) => Math.round(probability * 1e6));

test('a million millionths, none 0, each the nearest double to six decimals', (t) => {
  fc.assert(
    fc.property(distributions, (raw) => {
      const { probabilities } = roundDistribution(Float64Array.from(raw));
      const units = millionths(probabilities);
      return (
        probabilities.length === raw.length &&
        units.reduce((sum, unit) => sum + unit, 0) === 1_000_000 &&
        units.every((unit, index) => unit >= 1 && probabilities[index] === unit / 1e6)
      );
    }),
    { numRuns: 1000 },
  );
  t.pass();
});

test('the winner is the greatest of the model’s, and stays the greatest; order is kept', (t) => {
  fc.assert(
    fc.property(distributions, (raw) => {
      const { winner, probabilities } = roundDistribution(Float64Array.from(raw));
      if (raw.indexOf(Math.max(...raw)) !== winner) return false;
      const byRaw = raw.map((value, index) => ({ value, rounded: probabilities[index] as number }));
      byRaw.sort((a, b) => a.value - b.value || a.rounded - b.rounded);
      return byRaw.every(({ rounded }, index) => index === 0 || rounded >= (byRaw[index - 1]?.rounded as number));
    }),
    { numRuns: 1000 },
  );
  t.pass();
});

test('of two numbers with one share the greater gets the odd millionth', (t) => {
  const { winner, probabilities } = roundDistribution(
    Float64Array.of(0, 0.9999999999999998, 0, 0.9999999999999999, 0, 0.9345560083498484, 0),
  );
  t.is(winner, 3);
  t.is(probabilities[3], Math.max(...probabilities));
});

test('no probability moves by more than the floor and one unit', (t) => {
  fc.assert(
    fc.property(softmaxed, (raw) => {
      const { probabilities } = roundDistribution(Float64Array.from(raw));
      return raw.every(
        (value, index) => Math.abs(value - (probabilities[index] as number)) <= (raw.length + 1.001) / 1e6,
      );
    }),
    { numRuns: 500 },
  );
  t.pass();
});

test('the same values in the same places give the same result, bit for bit', (t) => {
  fc.assert(
    fc.property(distributions, (raw) => {
      const [first, second] = [roundDistribution(Float64Array.from(raw)), roundDistribution(Float64Array.from(raw))];
      return (
        first.winner === second.winner &&
        Buffer.from(first.probabilities.buffer).equals(Buffer.from(second.probabilities.buffer))
      );
    }),
  );
  t.pass();
});

test('a permutation of distinct values permutes the result', (t) => {
  // Whole numbers add up exactly in every order, so only a tie of remainders could tell orders apart: distinct values
  // have at most a unit of it.
  const distinct = fc
    .uniqueArray(fc.integer({ min: 0, max: 1e9 }), { minLength: 2, maxLength: 50 })
    .filter((values) => values.some(Boolean));
  fc.assert(
    fc.property(distinct, (raw) => {
      const forwards = roundDistribution(Float64Array.from(raw));
      const backwards = roundDistribution(Float64Array.from(raw.toReversed()));
      const turned = backwards.probabilities.toReversed();
      return (
        raw.length - 1 - backwards.winner === forwards.winner &&
        forwards.probabilities.every((value, index) => Math.abs(value - (turned[index] as number)) < 1.5e-6)
      );
    }),
  );
  t.pass();
});

const CASES: Readonly<Record<string, readonly [raw: readonly number[], rounded: readonly number[], winner: number]>> = {
  'a single one': [[0.3], [1], 0],
  'two equal ones': [[0.5, 0.5], [0.5, 0.5], 0],
  'three equal ones: the odd millionth goes to the first': [[1, 1, 1], [0.333334, 0.333333, 0.333333], 0],
  'a certainty leaves each of the others one millionth': [[0, 1, 0], [0.000001, 0.999998, 0.000001], 1],
  'a tie for the greatest goes to the first': [[0.2, 0.4, 0.4], [0.2, 0.4, 0.4], 1],
};

for (const [what, [raw, rounded, winner]] of Object.entries(CASES)) {
  test(what, (t) => {
    const result = roundDistribution(Float64Array.from(raw));
    t.deepEqual([...result.probabilities], [...rounded]);
    t.is(result.winner, winner);
  });
}

test('what is no distribution is refused', (t) => {
  for (const raw of [
    [],
    [0],
    [0, 0],
    [-1, 2],
    [Number.NaN, 1],
    [Number.POSITIVE_INFINITY, 1],
    [1e308, 1e308],
    [5e-324, 0],
  ])
    t.throws(() => roundDistribution(Float64Array.from(raw)), { instanceOf: RangeError }, JSON.stringify(raw));
});
