/** Temperatures: of a package, by the number of choices, and of a catalog, what it does to a distribution. */
import test from 'ava';
import fc from 'fast-check';
import { readTemperature } from '../../../src/engine/families/temperature.ts';
import { Checker } from '../../../src/engine/packages/manifest.ts';
import { applyTemperature } from '../../../src/engine/tempered.ts';

function read(temperature: unknown) {
  const problems: string[] = [];
  const options = { temperature };
  return { at: readTemperature(new Checker(options, 'options', problems)), problems };
}

const POINTS = [
  [2, 0.2],
  [8, 0.1],
  [128, 0.06],
];

const CASES: [name: string, temperature: unknown, choices: number, expected: number][] = [
  ['a number holds for few choices', 0.05, 2, 0.05],
  ['a number holds for many choices', 0.05, 300, 0.05],
  ['at the first point', { points: POINTS }, 2, 0.2],
  ['at a point', { points: POINTS }, 8, 0.1],
  ['halfway in the logarithm between two points', { points: POINTS }, 4, 0.15],
  ['a quarter of the way in the logarithm', { points: POINTS }, 16, 0.09],
  ['at the last point', { points: POINTS }, 128, 0.06],
  ['beyond the last point', { points: POINTS }, 300, 0.06],
  ['below the first point', { points: [[8, 0.1]] }, 2, 0.1],
];

for (const [name, temperature, choices, expected] of CASES) {
  test(name, (t) => {
    const { at, problems } = read(temperature);
    t.deepEqual(problems, []);
    t.true(Math.abs(at(choices) - expected) < 1e-12, `${at(choices)}`);
  });
}

const WRONG: [name: string, temperature: unknown][] = [
  ['zero', 0],
  ['below zero', -1],
  ['absent', undefined],
  ['null', null],
  ['text', '0.1'],
  ['an object without points', {}],
  ['a list', [0.1]],
  ['no points', { points: [] }],
  ['points that are not a list', { points: 1 }],
  ['a point that is not a pair', { points: [[2, 0.1, 3]] }],
  ['a point of text', { points: [['2', 0.1]] }],
  ['half a choice', { points: [[2.5, 0.1]] }],
  [
    'numbers of choices that do not rise',
    {
      points: [
        [2, 0.1],
        [2, 0.2],
      ],
    },
  ],
  ['a temperature of zero', { points: [[2, 0]] }],
];

for (const [name, temperature] of WRONG) {
  test(`a problem with its place: ${name}`, (t) => {
    const { problems } = read(temperature);
    t.is(problems.length, 1);
    t.true(problems[0]?.startsWith('options.temperature must'));
  });
}

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
