/** The temperature of a catalog: what it does to a distribution, and when it is worth having. */
import test from 'ava';
import fc from 'fast-check';
import { applyTemperature, fitCalibration, MIN_EXAMPLES, type ScoredExample } from '../../src/domain/calibration.ts';

const firstHighest = (values: Float64Array): number => values.indexOf(Math.max(...values));

const distribution = fc
  .array(fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 0.5, 0.5 + Number.EPSILON)), {
    minLength: 2,
    maxLength: 20,
  })
  .filter((values) => values.some((value) => value > 1e-3))
  .map((values) => {
    const sum = values.reduce((total, value) => total + value, 0);
    return Float64Array.from(values, (value) => value / sum);
  });

test('no temperature changes the answer or the order', (t) => {
  fc.assert(
    fc.property(distribution, fc.double({ min: 0.1, max: 10, noNaN: true }), (p, temperature) => {
      const q = applyTemperature(p, temperature);
      if (firstHighest(q) !== firstHighest(p)) return false;
      const sum = q.reduce((total, value) => total + value, 0);
      if (Math.abs(sum - 1) > 1e-9) return false;
      return p.every((one, i) =>
        p.every((other, j) => one >= other === false || i === j || (q[i] ?? 0) >= (q[j] ?? 0) * (1 - 1e-12)),
      );
    }),
  );
  t.pass();
});

test('1 leaves everything as it is, more evens out, less decides', (t) => {
  const p = Float64Array.of(0.2, 0.8);
  t.is(applyTemperature(p, 1), p);
  const even = applyTemperature(p, 2);
  t.true(Math.abs((even[1] ?? 0) - 2 / 3) < 1e-12);
  const sure = applyTemperature(p, 0.5);
  t.true(Math.abs((sure[1] ?? 0) - 16 / 17) < 1e-12);
});

/** Examples whose answers, of probability `claimed`, are right in the share `true` of cases. */
function examples(count: number, claimed: number, share: number): readonly ScoredExample[] {
  return Array.from({ length: count }, (_, i) => {
    // Spread evenly: a share of 0.8 is wrong at every fifth, wherever one begins.
    const right = Math.floor((i + 1) * share) > Math.floor(i * share);
    return { probabilities: Float64Array.of(claimed, 1 - claimed), label: right ? 0 : 1 };
  });
}

test('a model that is too sure gets a higher temperature, one that is not sure enough a lower one', (t) => {
  const tooSure = fitCalibration(examples(203, 0.98, 0.7));
  t.true(tooSure.helps);
  t.true(tooSure.temperature > 2);
  t.true(Math.abs(tooSure.after.confidence - 0.7) < 0.05);
  t.true(tooSure.after.logLoss < tooSure.before.logLoss);
  t.true(Math.abs(tooSure.accuracy - 0.7) < 0.01);
  const tooShy = fitCalibration(examples(203, 0.55, 0.9));
  t.true(tooShy.helps);
  t.true(tooShy.temperature < 0.5);
});

test('a model that is as sure as it is right is left alone', (t) => {
  t.false(fitCalibration(examples(203, 0.8, 0.8)).helps);
});

test('few examples without an error make nothing extreme', (t) => {
  const fit = fitCalibration(examples(MIN_EXAMPLES, 0.9, 1));
  t.true(fit.temperature > 0.2);
  t.throws(() => fitCalibration(examples(MIN_EXAMPLES - 1, 0.9, 1)), { instanceOf: RangeError });
});
