/** The temperature of a catalog: what it does to a distribution. */
import test from 'ava';
import fc from 'fast-check';
import { applyTemperature } from '../../src/engine/tempered.ts';

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
