/** The metrics of `npm run eval`, against values worked out by hand, and the reading of data sets. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import test from 'ava';
import type { Answer } from '../../bench/eval/ask.ts';
import { type DataSet, readDataSets, readFolders } from '../../bench/eval/data-sets.ts';
import { average, measure, reliability } from '../../bench/eval/metrics.ts';
import { agreement, parallelQuality, parallelSets } from '../../bench/eval/parallel.ts';
import { readWordings, rewordedSets, wordingQuality } from '../../bench/eval/wordings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const CHOICES = ['a', 'b', 'c'];
const setOf = (labels: readonly string[], rest: Partial<DataSet> = {}): DataSet => ({
  name: 'set',
  kind: undefined,
  language: undefined,
  fixedChoices: true,
  pairs: false,
  rows: labels.map((label) => ({ input: 'x', instruction: 'x', choices: CHOICES, label })),
  ...rest,
});

/** An answer that gives `confidence` to the choice and shares the rest. */
function answer(choice: string, confidence: number, label: string): Answer {
  const rest = (1 - confidence) / 2;
  const squares = confidence ** 2 + 2 * rest ** 2;
  const probabilities = new Map(CHOICES.map((each) => [each, each === choice ? confidence : rest]));
  return { kind: 'decided', choice, confidence, ofLabel: choice === label ? confidence : rest, squares, probabilities };
}

const near = (actual: number | undefined, expected: number): boolean =>
  Math.abs((actual ?? Number.NaN) - expected) < 1e-9;

test('accuracy, macro-F1, Brier and sure errors of four answers', (t) => {
  const labels = ['a', 'a', 'b', 'b'];
  const given = ['a', 'b', 'b', 'c'];
  const quality = measure(
    setOf(labels),
    given.map((choice, i) => answer(choice, 0.9, labels[i] as string)),
  );
  t.is(quality.accuracy, 0.5);
  // a: 1 hit of 2 asked, 1 given → 2/3; b: 1 hit, 2 asked, 2 given → 1/2; c: never asked → 0.
  t.true(near(quality.macroF1, (2 / 3 + 1 / 2 + 0) / 3));
  t.is(quality.wrongAndSure, 0.5);
  t.is(quality.sure, 4);
  // Right: 0.1² + 2 · 0.05²; wrong: 0.9² + 0.05² + 0.95².
  t.true(near(quality.brier, (0.015 + 1.715) / 2));
  t.true(near(quality.ece, (0.1 + 0.9 + 0.1 + 0.9) / 4));
});

test('a refused row is a wrong answer without confidence', (t) => {
  const quality = measure(setOf(['a', 'b']), [answer('a', 1, 'a'), { kind: 'refused', code: 'input_tokens_exceeded' }]);
  t.is(quality.refused, 1);
  t.is(quality.accuracy, 0.5);
  t.is(quality.ece, 0);
  t.is(quality.brier, 0.5);
  t.is(quality.wrongAndSure, 0);
});

test('bins have equal mass: 32 rows make 15 of two or three, by rising confidence', (t) => {
  const judged = Array.from({ length: 32 }, (_, i) => ({ confidence: (31 - i) / 32, right: i % 2 === 0 }));
  const bins = reliability(judged);
  t.deepEqual(
    bins.map(({ count }) => count),
    [3, 3, ...new Array(13).fill(2)],
  );
  t.true(near(bins[0]?.confidence, 1 / 32));
  t.true(near(bins.at(-1)?.confidence, 30.5 / 32));
});

test('pairs count as opposite when both are answered and differ', (t) => {
  const set = setOf(['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b'], { pairs: true });
  const answers: Answer[] = ['a', 'b', 'b', 'a', 'a', 'a', 'a'].map((choice) => answer(choice, 0.5, 'a'));
  t.is(measure(set, [...answers, { kind: 'refused', code: 'x' }]).opposite, 0.5);
});

test('none of these is missed where it is right, and wrongly chosen where another choice fits', (t) => {
  const choices = ['a', 'none of these'];
  const labels = ['none of these', 'none of these', 'none of these', 'a', 'a', 'a'];
  const rows = labels.map((label) => ({ input: 'x', instruction: 'x', choices, label }));
  const given = ['none of these', 'a', '', 'none of these', 'a', ''];
  const answers = given.map(
    (choice): Answer => (choice === '' ? { kind: 'refused', code: 'x' } : answer(choice, 0.5, 'a')),
  );
  const quality = measure(setOf([], { rows }), answers);
  t.deepEqual(quality.none, { right: 3, missed: 2, wrong: 3, chosen: 1 });
  t.deepEqual(average([quality, quality]).none, { right: 6, missed: 4, wrong: 6, chosen: 2 });
  t.deepEqual(measure(setOf(['a']), [answer('b', 1, 'a')]).none, { right: 0, missed: 0, wrong: 0, chosen: 0 });
});

test('questions whose choices have other wordings are asked in each, and compared by what the answers mean', (t) => {
  const lists = [CHOICES, ['x', 'y', 'z'], ['1', '2', '3']];
  const other = setOf(['no'], { rows: [{ input: 'x', instruction: 'x', choices: ['yes', 'no'], label: 'no' }] });
  const sets = rewordedSets([setOf(['a', 'b', 'c']), other], [lists]);
  t.deepEqual(
    sets.map(({ rows }) => rows.map(({ label }) => label)),
    [
      ['a', 'b', 'c'],
      ['x', 'y', 'z'],
      ['1', '2', '3'],
    ],
  );
  const given = new Map([
    ['wording 1', ['a', 'b', 'a']],
    ['wording 2', ['x', 'z', 'x']],
    ['wording 3', ['1', '2', '1']],
  ]);
  const found = wordingQuality(sets, ({ name }) => (given.get(name) ?? []).map((choice) => answer(choice, 0.5, 'a')));
  t.like(found, { rows: 3, accuracies: [2 / 3, 1 / 3, 2 / 3], same: 2 / 3 });
  t.is(
    wordingQuality([other], () => []),
    undefined,
  );
});

test('every wording of a list has as many choices, and each once', (t) => {
  const wordings = readWordings();
  t.is(new Set(wordings.map(([own]) => JSON.stringify(own))).size, wordings.length);
  for (const lists of wordings) {
    t.is(lists.length, 3);
    for (const list of lists) t.true(new Set(list).size === lists[0]?.length, list.join());
  }
});

test('the mean counts every set the same, and only those with a macro-F1 for it', (t) => {
  const one = measure(setOf(['a', 'a', 'a']), [answer('a', 1, 'a'), answer('a', 1, 'a'), answer('b', 1, 'a')]);
  const other = measure(setOf(['a'], { fixedChoices: false }), [answer('b', 1, 'a')]);
  const mean = average([one, other]);
  t.true(near(mean.accuracy, 1 / 3));
  t.is(mean.macroF1, one.macroF1);
  t.is(mean.rows, 4);
  t.is(mean.sure, one.sure + other.sure);
});

test('sets that differ in their language alone are parallel if their rows are', (t) => {
  const labels = [...'aabbccabca'];
  const named = (name: string, language: string | undefined, rows = labels) => setOf(rows, { name, language });
  const sets = [
    named('x_de', 'de'),
    named('x_en', 'en'),
    named('x_fr', 'fr', ['b', ...labels.slice(1)]),
    named('x_it', 'it', ['b', 'b', 'a', ...labels.slice(3)]),
    named('x_ja', 'ja', labels.slice(1)),
    named('x_nl', undefined),
    named('y_de', 'de'),
  ];
  t.deepEqual(
    parallelSets(sets).map(({ name, language }) => `${name} ${language}`),
    ['x de', 'x fr'],
  );
});

test('answers in two languages agree by their choice, and are apart by the probability of the English one', (t) => {
  const labels = ['a', 'b', 'c', 'a'];
  const english = [0.9, 0.8, 0.6, 0.5].map((confidence, i) => answer(labels[i] as string, confidence, 'a'));
  const other: Answer[] = [
    answer('a', 0.7, 'a'),
    answer('c', 0.6, 'a'),
    answer('c', 0.6, 'a'),
    { kind: 'refused', code: 'input_tokens_exceeded' },
  ];
  const found = agreement(english, other);
  t.like(found, { pairs: 4, same: 0.5 });
  // .2, .6 and 0; b has .2 where c has .6.
  t.true(near(found.apart, 0.2));
  const sets = [setOf(labels, { name: 'x_en', language: 'en' }), setOf(labels, { name: 'x_de', language: 'de' })];
  const parallel = parallelQuality(sets, ({ language }) => (language === 'en' ? english : other));
  t.deepEqual(parallel.all, found);
});

test('data sets are read plain or packed, a few rows of each or all', (t) => {
  const folder = temporaryFolder();
  const lines = (meta: object, rows: readonly object[]): string =>
    [{ meta }, ...rows].map((each) => `${JSON.stringify(each)}\n`).join('');
  const rows = Array.from({ length: 10 }, (_, i) => ({ input: `${i}`, instruction: 'i', choices: null, label: 'no' }));
  writeFileSync(join(folder, 'b.jsonl'), lines({ labels: ['yes', 'no'], pairs: true }, rows));
  writeFileSync(
    join(folder, 'a.jsonl.gz'),
    gzipSync(lines({ labels: null }, [{ input: 'x', instruction: 'i', choices: ['u', 'v'], label: 'v' }])),
  );
  const [a, b] = readDataSets(folder, { rows: 4 });
  t.is(a?.name, 'a');
  t.false(a?.fixedChoices);
  const inputs = b?.rows.map(({ input }) => input);
  t.deepEqual(inputs, ['0', '1', '4', '5']);
  t.deepEqual(b?.rows[0]?.choices, ['yes', 'no']);
  t.throws(() => readDataSets(folder, { sets: ['c'] }), { message: /has no set 'c'/ });
  t.deepEqual(
    readFolders([folder, folder], { sets: ['b'], rows: 2 }).map(({ name, rows }) => `${name} ${rows.length}`),
    ['b 2', 'b 2'],
  );
  t.throws(() => readFolders([folder], { sets: ['b', 'c'] }), { message: /there is no set 'c'/ });
  writeFileSync(join(folder, 'c.jsonl'), lines({ labels: ['yes'] }, rows));
  t.throws(() => readDataSets(folder), { message: /c\.jsonl, line 2: the label is not one of the choices/ });
});
