import test from 'ava';
import { readTemperature } from '../../../src/engine/families/temperature.ts';
import { createChecker } from '../../../src/engine/packages/manifest.ts';

function read(temperature: unknown) {
  const problems: string[] = [];
  const options = { temperature };
  return { at: readTemperature(createChecker(options, 'options', problems)), problems };
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
