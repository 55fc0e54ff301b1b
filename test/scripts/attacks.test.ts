/**
 * What the table of attacks is judged by: its oracle is fair to a service that tells nothing, and its defects name
 * tests that are there.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { DEFECTS } from '../../scripts/attacks/defects.ts';
import { makeGuesses, toldApart } from '../../scripts/attacks/oracle.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const numbered = (letter: string, length: number): readonly string[] =>
  Array.from({ length }, (_, index) => `${letter}${index + 1}`);

test('each defect names a test that is there', (t) => {
  t.deepEqual(
    DEFECTS.map(({ id }) => id),
    [...numbered('D', 23), ...numbered('P', 7)],
  );
  for (const {
    id,
    test: [file, title],
  } of DEFECTS)
    t.true(readFileSync(`${root}${file}`, 'utf8').includes(title), `${id}: ${title}`);
});

test('each phrase and each number is as often stored as not, so that neither tells a guess', (t) => {
  const guesses = makeGuesses(1);
  t.is(guesses.length, 200);
  const stored = new Map<string, number>();
  for (const { text, stored: is } of guesses) {
    for (const part of [text.slice(0, -2), text.slice(-1)]) stored.set(part, (stored.get(part) ?? 0) + (is ? 1 : -1));
  }
  t.is(stored.size, 102);
  t.deepEqual([...new Set(stored.values())], [0]);
});

test('times that tell everything, nothing, and half of it', (t) => {
  t.is(toldApart([1, 2], [3, 4]).share, 1);
  t.is(toldApart([3, 4], [1, 2]).share, 0);
  t.is(toldApart([1, 1], [1, 1]).share, 0.5);
  t.is(toldApart([1, 3], [2, 4]).share, 0.75);
  // Three times the root of (n + m + 1) / 12nm.
  t.true(Math.abs(toldApart(new Array(100).fill(1), new Array(100).fill(1)).chance - 0.1228) < 1e-4);
});
