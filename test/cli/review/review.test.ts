/** `umpire review`: the page by its keys, and line by line. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Page } from '../../../src/cli/command.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

const CHOICES = ['account', 'billing', 'returns', 'shipping'];
const jsonl = (records: readonly object[]) => records.map((each) => `${JSON.stringify(each)}\n`).join('');

/** Decided texts; the first of them is the surest. */
const decided = Array.from({ length: 6 }, (_, i) => ({
  input: `text ${i}`,
  instruction: 'Which team?',
  choice: CHOICES[i % 4],
  confidence: 0.9 - i / 10,
  probabilities: Object.fromEntries(CHOICES.map((choice, k) => [choice, k === i % 4 ? 0.9 - i / 10 : 0.05])),
  model: 'umpire-mini@r11',
}));

function newFile(content: string, name = 'decided.jsonl'): string {
  const file = join(temporaryFolder(), name);
  writeFileSync(file, content);
  return file;
}

const labelsIn = (file: string): readonly Record<string, string>[] =>
  existsSync(file) ? linesOf(readFileSync(file, 'utf8')).map((line) => JSON.parse(line)) : [];

/** Runs a review whose keys are pressed one by one; names of keys stand in brackets. Each page is kept. */
async function press(file: string, keys: string, { columns = 80, rows = 24, args = [] as readonly string[] } = {}) {
  const pages: string[] = [];
  const screen = async (page: Page): Promise<void> => {
    const draw = (): void => {
      const lines = page.lines(columns, rows);
      pages.push(lines.join('\n'));
    };
    draw();
    for (const [key, name] of keys.matchAll(/\[([\w-]+)\]|./gs)) {
      const goesOn = page.press(name === undefined ? { text: key, name: key } : { text: '', name });
      if (!goesOn) return;
      draw();
    }
  };
  const ran = await runUmpire(['review', file, ...args], { screen });
  return { ...ran, pages, last: pages.at(-1) ?? '', labels: labelsIn(`${file}.reviewed.jsonl`) };
}

test('texts come from the least sure on; a key is an answer, Enter the one that was decided', async (t) => {
  const file = newFile(jsonl(decided));
  const { pages, labels, err, status } = await press(file, '4[return]1.');
  t.is(status, 0);
  t.deepEqual(linesOf(pages[0] ?? ''), [
    '0 of 6 have a label, 0 skipped',
    'Which team?',
    '',
    'text 5',
    '',
    'Decided: billing 0.400 by umpire-mini@r11',
    '',
    '2 billing 0.400    1 account 0.050    3 returns 0.050    4 shipping 0.050',
    '',
    'Enter as decided  / find  - skip  < undo  + note  > more text  . end',
  ]);
  t.deepEqual(labels, [
    { input: 'text 5', instruction: 'Which team?', label: 'shipping' },
    { input: 'text 4', instruction: 'Which team?', label: 'account' },
    { input: 'text 3', instruction: 'Which team?', label: 'account' },
  ]);
  t.is(err, `${file}.reviewed.jsonl: 3 of 6 have a label, 0 skipped\n`);
});

test('skip, undo, note and find; a later review goes on where this one ended', async (t) => {
  const file = newFile(jsonl(decided));
  const first = await press(file, '-1<<+wrong team[return]/ship[backspace]p[return].');
  t.is(first.labels.length, 1);
  t.deepEqual(first.labels[0], { input: 'text 5', instruction: 'Which team?', label: 'shipping', note: 'wrong team' });
  t.true(first.pages.some((page) => page.includes('Note: wrong team')));
  t.true(first.pages.some((page) => /\n4 shipping 0\.\d+\n\(.*\)\n\/ship_$/.test(page)));
  // Nothing is like that, or several are; Escape gives it up; nothing is left to undo from before.
  const second = await press(file, '/qqq[return]/[return]/x[escape]<-.');
  t.true(second.pages.some((page) => page.endsWith('\nNo choice is like that')));
  t.true(second.pages.some((page) => page.endsWith('\nThat may be account, billing, returns, shipping')));
  t.true(second.pages.some((page) => page.endsWith('\nThere is nothing to undo')));
  t.regex(second.pages[0] ?? '', /^1 of 6 have a label, 0 skipped\n.*\n\ntext 4\n/);
  // What was skipped comes again, and the last text ends the review.
  const third = await press(file, '1[return]/retu[return]1-9');
  t.is(third.labels.length, 5);
  t.regex(third.err, /: 5 of 6 have a label, 1 skipped\n/);
  const broken = newFile('{"input":"a","label":"b"}\nnonsense\n');
  t.regex((await press(file, '.', { args: ['--out', broken] })).err, /line 2: is not a JSON object/);
  // Somebody else's line is not taken back.
  const shared = newFile(jsonl(decided));
  const screen = async (page: Page): Promise<void> => {
    page.lines(80, 24);
    page.press({ text: '1', name: '1' });
    appendFileSync(`${shared}.reviewed.jsonl`, jsonl([{ input: 'text 0', label: 'billing' }]));
    page.press({ text: '<', name: '<' });
    t.regex(page.lines(80, 24).join(' '), /was changed by another program/);
  };
  await runUmpire(['review', shared], { screen });
  t.is(labelsIn(`${shared}.reviewed.jsonl`).length, 2);
});

test('a page fits its terminal, whatever the text holds and however many choices there are', async (t) => {
  const many = Array.from({ length: 150 }, (_, i) => `choice number ${i}`);
  const long = `\u001b[2J\u0007red 漢字✅漢字 ${'word '.repeat(400)}${'x'.repeat(300)}\r\nsecond\tline \u202e`;
  const probabilities = Object.fromEntries(many.map((choice, k) => [choice, k === 149 ? 0.5 : 0.5 / 149]));
  const record = { ...decided[0], input: long, choice: 'choice number 149', confidence: 0.5, probabilities };
  const file = newFile(jsonl([record]));
  for (const [columns, rows] of [
    [80, 24],
    [40, 12],
    [200, 60],
    [20, 5],
    [1, 1],
  ] as const) {
    const { pages } = await press(file, '>>>>/choice number 1[escape].', { columns, rows });
    for (const page of pages) {
      const lines = page.split('\n');
      t.true(lines.length <= rows, `${lines.length} lines of ${rows}`);
      for (const line of lines) {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: those that must not be there
        t.notRegex(line, /[\u0000-\u001f\u007f-\u009f\u202e]/);
        t.true(line.length + (line.match(/[漢字✅]/g)?.length ?? 0) <= columns, line);
      }
    }
  }
  const [first = '', second = ''] = (await press(file, '>.')).pages;
  t.regex(first, /\n\\u001b\[2J\\u0007red 漢字✅/);
  t.regex(first, /\n\(\d+ more lines\)\nDecided: choice number 149 0\.500/);
  // The likeliest has the first key, and the others are found by their names.
  t.regex(first, /\n1 choice number 149 0\.500 /);
  t.regex(first, /\n\(\/ finds the other choices\)\n/);
  t.notRegex(second, /u001b/);
  // In a terminal that is made wider, the text ends before what was shown last: it is shown from its beginning.
  await runUmpire(['review', file], {
    screen: async (page) => {
      for (let k = 0; k < 10 && !page.lines(20, 30).join().includes('second'); k++)
        page.press({ text: '>', name: '>' });
      t.regex(page.lines(200, 30).join('\n'), /\nWhich team\?\n/);
    },
  });
  // A text of a mebibyte is shown as fast as it is read.
  const huge = newFile(jsonl([{ ...record, input: 'word '.repeat(200_000) }]));
  t.regex((await press(huge, '>>>.')).last, /\(\d{4,} more lines\)/);
  t.is((await press(file, '/choice number 77[return]')).labels[0]?.label, 'choice number 77');
});

test('a choice that is named like a key has that key', async (t) => {
  const scale = ['0', '1', '2', '10'];
  const record = {
    input: 'a',
    choice: '1',
    confidence: 0.4,
    probabilities: Object.fromEntries(scale.map((c) => [c, 0.25])),
  };
  const file = newFile(jsonl([record, { ...record, input: 'b' }]));
  const { pages, labels } = await press(file, '23');
  t.regex(pages[0] ?? '', /\n0 0 0\.250 +1 1 0\.250 +3 10 0\.250 +2 2 0\.250\n/);
  t.deepEqual(
    labels.map(({ label }) => label),
    ['2', '10'],
  );
});

test('what decide writes as CSV, and what teach asked, where catalog and teacher disagree', async (t) => {
  const rows = [
    'input,choice,confidence,probabilities,model,error',
    'a,billing,0.4,"{""billing"":0.4}",m@r1,',
    'b,,,,,"busy: later"',
  ];
  const csv = newFile(rows.map((row) => `${row}\r\n`).join(''), 'decided.csv');
  const file = newFile('["billing","returns"]', 'choices.json');
  const { pages, labels, err } = await press(csv, '2', { args: ['--choices', file, '--instruction', 'Which?'] });
  t.regex(pages[0] ?? '', /1 billing 0\.400 {3}2 returns\n/);
  t.regex(err, /^1 records have no answer; left out\n/);
  t.deepEqual(labels, [{ input: 'a', instruction: 'Which?', label: 'returns' }]);
  const asked = decided.map((each, i) => ({
    ...each,
    pupil: { choice: i < 2 ? 'returns' : each.choice, confidence: 0.3 },
  }));
  const some = await press(newFile(jsonl(asked)), '.', { args: ['--disagreeing'] });
  t.regex(some.last, /^0 of 2 have .*\nDecided: billing 0\.800 by umpire-mini@r11; the catalog: returns 0\.300\n/s);
  t.regex((await runUmpire(['review', csv])).err, /not a terminal that can show a page: --plain reads line by line/);
  t.regex((await press(newFile('{"input":"a"}\n'), '.')).err, /has no decided texts/);
});

test('line by line: the same answers for a screen reader and for a program', async (t) => {
  const file = newFile(jsonl(decided));
  const input = '?\nzzz\nre\n+ looks odd\n\n-\n<\nship\n\n.\n';
  const { status, out, err } = await runUmpire(['review', '--plain', file], { input });
  t.is(status, 0, err);
  t.deepEqual(linesOf(out).slice(0, 10), [
    '0 of 6 have a label, 0 skipped',
    'Question: Which team?',
    'Text: text 5',
    'Decided: billing 0.400 by umpire-mini@r11',
    'Choice 2 billing 0.400',
    'Choice 1 account 0.050',
    'Choice 3 returns 0.050',
    'Choice 4 shipping 0.050',
    'Your answer, or ? for help:',
    'Enter alone: as decided. A key, or the beginning of a choice: that choice. -: skip. <: undo. + TEXT: a note. .: end. Your answer, or ? for help:',
  ]);
  t.regex(out, /\nNo choice is like that\. Your answer, or \? for help:\n/);
  t.deepEqual(
    labelsIn(`${file}.reviewed.jsonl`).map(({ input: text, label, note }) => [text, label, note]),
    [
      ['text 5', 'returns', undefined],
      ['text 4', 'account', 'looks odd'],
      ['text 3', 'shipping', undefined],
      ['text 2', 'returns', undefined],
    ],
  );
  t.false(out.includes('\u001b'));
});
