/** The rules of the two-stage family, one by one. */
import test from 'ava';
import { plainText, readFinder, wordsOf } from '../../../../src/engine/families/two-stage/finder.ts';
import {
  closenessOf,
  composeDistribution,
  leaningOf,
  residualsAmong,
  type StackRule,
  scaleStepsAmong,
  stackLogits,
  verdictsAmong,
} from '../../../../src/engine/families/two-stage/stack.ts';
import { packFeeds, splitOptions } from '../../../../src/engine/families/two-stage/stages.ts';
import { linesOf, planOf, splitPremise } from '../../../../src/engine/families/two-stage/windows.ts';
import { highest } from '../../../../src/engine/families/vectors.ts';
import { InvalidOptions } from '../../../../src/engine/packages/manifest.ts';

const SYMBOLS = new Map([
  ['😀', ' grinning face '],
  ['\u200d', ''],
  ['🇫', 'f'],
  ['🇷', 'r'],
  ['€', ' euro sign '],
]);

test('texts are read with their symbols by name', (t) => {
  t.is(plainText('plain_text stays asIs', SYMBOLS), 'plain_text stays asIs');
  t.is(plainText('I love it 😀', SYMBOLS), 'I love it  grinning face ');
  t.is(plainText('🇫🇷 a\u200db 5€ é', SYMBOLS), 'fr ab 5 euro sign  é');
});

const CHOICES: readonly (readonly [choice: string, read: string])[] = [
  ['play_music', 'play music'],
  ['playMusic', 'play Music'],
  ['PlayMusic', 'Play Music'],
  ['PLAY_MUSIC', 'PLAY MUSIC'],
  ['play-music', 'play music'],
  ['play-music now', 'play-music now'],
  ['iPhone', 'iPhone'],
  ['HTTPServer', 'HTTPServer'],
  ['turnOnLights', 'turn On Lights'],
  ['A-1', 'A-1'],
  ['24/7', '24/7'],
  ['__init__', ' init '],
  ['_', '_'],
  ['😀', ' grinning face '],
  ['snake_case words', 'snake case words'],
  ['[SEP]', '[SEP]'],
  ['$&', '$&'],
  ["$1_$'", "$1 $'"],
  ['naïve_choice', 'naïve choice'],
  ['éA-éB', 'éA-éB'],
  ['a_\u200d', 'a '],
  ['ORDER_STATUS', 'ORDER STATUS'],
  ['refundRequest-v2', 'refund Request v2'],
  ['<b>boldText</b>', '<b>bold Text</b>'],
];
for (const [choice, read] of CHOICES) {
  test(`a choice is read as words: ${choice}`, (t) => {
    t.is(plainText(wordsOf(choice), SYMBOLS), read);
  });
}

test('a pack restarts positions and numbers blocks', (t) => {
  const special = { cls: 1, sep: 2, mask: 3, unk: 0 };
  const feeds = packFeeds([10, 11], [20], [[30, 31], [40]], special);
  const numbers = Object.fromEntries(Object.entries(feeds).map(([name, { data }]) => [name, Array.from(data, Number)]));
  t.deepEqual(numbers, {
    input_ids: [1, 10, 11, 2, 20, 2, 3, 30, 31, 3, 40],
    position_ids: [0, 1, 2, 3, 4, 5, 6, 7, 8, 6, 7],
    block_ids: [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2],
    markers: [6, 9],
  });
  t.deepEqual(feeds.markers.dims, [2]);
  t.deepEqual(feeds.input_ids.dims, [1, 11]);
});

test('options are split when a pack is full, one at least in each', (t) => {
  const options = [[1, 1], [2], [3, 3, 3], [4], [5, 5, 5, 5, 5, 5, 5, 5, 5]];
  t.deepEqual(splitOptions(5, options, 10), [[[1, 1], [2]], [[3, 3, 3]], [[4]], [[5, 5, 5, 5, 5, 5, 5, 5, 5]]]);
  t.deepEqual(splitOptions(5, options, 100), [options]);
  t.deepEqual(splitOptions(50, [[1], [2]], 10), [[[1]], [[2]]]);
});

test('a long premise is cut at the ends of sentences into segments that cover it', (t) => {
  const options = {
    premise: 20,
    carriedInstruction: 4,
    segment: 8,
    least: 3,
    stops: [7, 8, 9],
    finder: 'finder.json',
    firstLead: 0,
    read: 2,
    kappaConfidence: 0,
    kappaRelevance: 0,
  };
  const numbers = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);
  const cut = (instruction: readonly number[], ...lines: readonly (readonly number[])[]) =>
    splitPremise(instruction, lines, options);
  t.deepEqual(cut([1, 2], numbers(10, 15)), { instruction: [1, 2], windows: [numbers(10, 15)] });
  t.deepEqual(cut([1, 2], numbers(10, 10), numbers(20, 5)).windows, [numbers(10, 15)]);
  t.deepEqual(cut([1, 2], numbers(10, 16)).windows, [numbers(10, 8), numbers(18, 8)]);
  const sentences = [[10, 11, 7], [12, 9, 13, 8], numbers(14, 8), [22, 23, 9], [24]];
  t.deepEqual(cut([], sentences.flat()).windows, sentences);
  // A line ends a segment, however short it is.
  const lines = [numbers(10, 5), [15], numbers(16, 9), [25, 26, 27]];
  t.deepEqual(cut([1], ...lines).windows, [numbers(10, 5), [15], numbers(16, 8), [24], [25, 26, 27]]);
  // Unless there would be more of them than a text without lines can have.
  const short = numbers(10, 21).map((token) => [token]);
  t.deepEqual(cut([1], ...short).windows, [numbers(10, 8), numbers(18, 8), numbers(26, 5)]);
  // An instruction that is not carried whole loses nothing: its end is a line.
  const long = cut(numbers(1, 6), numbers(10, 5));
  t.deepEqual(long, { instruction: [1, 2, 3, 4], windows: [[5, 6, ...numbers(10, 5)]] });
  t.deepEqual(cut(numbers(1, 6), numbers(20, 16)).windows, [[5, 6], numbers(20, 8), numbers(28, 8)]);
  for (const tokens of [18, 19, 20, 26, 27, 100]) {
    const text = numbers(0, tokens).map((i) => i % 11);
    const { windows } = cut([], text);
    t.deepEqual(windows.flat(), text);
    t.true(windows.slice(0, -1).every(({ length }) => length >= options.least && length <= options.segment));
  }
  // 10 tokens of premise, and four full packs of 20.
  const sizes = { windows: { ...options, segment: 5, read: 3 }, best: 2, packTokens: 20 };
  t.is(planOf(2, [5, 1, 9, 2], sizes).most, 3);
  t.is(planOf(2, [20, 29, 29], sizes).most, 1);
  t.is(planOf(2, [500, 500], sizes).most, 1);
  t.is(planOf(2, [14, 14], sizes).most, 2);
  t.true(planOf(2, [3, 1, 4], { ...sizes, packTokens: 29 }).first);
  t.false(planOf(2, [3, 1, 4], { ...sizes, packTokens: 28 }).first);
  t.deepEqual(highest([1, 5, 3, 5, 4], 3), [1, 3, 4]);
  t.deepEqual(highest([2, 2, 2], 2), [0, 1]);
});

test('a text is read line by line if its lines say something', async (t) => {
  // One token a letter; "x" has none.
  const ids = (text: string): number[] => Array.from(text.replace(/[x\s]/g, ''), (letter) => letter.charCodeAt(0));
  const read = (text: string, tokens = ids(text)) => linesOf(text, tokens, async (line) => ids(line));
  t.deepEqual(await read('ab\n\n \nc\r\nde'), [ids('ab'), ids('c'), ids('de')]);
  t.deepEqual(await read('abc'), [ids('abc')]);
  t.deepEqual(await read('a\nx\nx'), [ids('a')], 'more lines than tokens');
});

test('lines are kept where white space at the end of a text or a line is a token', async (t) => {
  // As of Unigram: words begin with the mark of a space, and a space at the end is one.
  const ids = (text: string): number[] => Array.from(`_${text.replace(/\s+/g, '_')}`, (letter) => letter.charCodeAt(0));
  const read = (text: string) => linesOf(text, ids(text), async (line) => ids(line));
  t.deepEqual(await read('ab\ncd\n'), [ids('ab'), ids('cd')]);
  t.deepEqual(await read('ab \ncd'), [ids('ab '), ids('cd')]);
});

test('a segment matters by how far it stands out and by what kind of sentence it is', (t) => {
  const vectors = [Float32Array.of(1, 0), Float32Array.of(1, 0), Float32Array.of(0, 1)];
  const still = { near: 0, asked: 0, own: [0, 0], segment: [], instruction: [] };
  // The first choice is near to all segments, the second to the last alone.
  const view = {
    segments: vectors,
    instruction: Float32Array.of(0.6, 0.8),
    cosines: [Float64Array.of(0.9, 0.1), Float64Array.of(0.9, 0.1), Float64Array.of(0.8, 0.3)],
  };
  const close = (found: readonly number[], expected: readonly number[]): void => {
    t.is(found.length, expected.length);
    for (const [w, value] of expected.entries()) {
      t.true(Math.abs((found[w] ?? 0) - value) < 1e-4, `segment ${w}: ${found[w]} instead of ${value}`);
    }
  };
  close(readFinder({ ...still, near: 2 })(view), [Math.SQRT2, Math.SQRT2, 2 * Math.SQRT2]);
  close(readFinder({ ...still, asked: 1 })(view), [-Math.SQRT1_2, -Math.SQRT1_2, Math.SQRT2]);
  close(readFinder({ ...still, own: [3, -1] })(view), [3, 3, -1]);
  const form = {
    segment: [
      [1, 0],
      [0, 2],
    ],
    instruction: [
      [1, 0],
      [1, 1],
    ],
  };
  close(readFinder({ ...still, ...form })(view), [0.6, 0.6, 2.8]);
});

test('a finder that is not one is refused with every problem', (t) => {
  const right = { near: 1, asked: 1, own: [1, 2], segment: [[1, 2]], instruction: [[3, 4]] };
  t.notThrows(() => readFinder(right));
  const shapes = 'finder must have vectors of one length: one of its own, as many for segments as for instructions';
  for (const wrong of [
    { own: [1] },
    { own: 'x' },
    { segment: [] },
    { segment: [[1, null]] },
    { instruction: [[1], [2]] },
  ]) {
    const refused = t.throws(() => readFinder({ ...right, ...wrong }), { instanceOf: InvalidOptions });
    t.deepEqual(refused.problems, [shapes], JSON.stringify(wrong));
  }
  const refused = t.throws(() => readFinder({ ...right, near: '1' }), { instanceOf: InvalidOptions });
  t.deepEqual(refused.problems, ['finder.near must be a number from -1000000 to 1000000']);
  t.throws(() => readFinder(null), { instanceOf: InvalidOptions });
});

test('verdicts are known words, and choices beside their own negation; a residual is a known word', (t) => {
  const [yes, no, not, urgent, sure] = [[1], [2], [3], [4], [5, 6]] as const;
  const share = (...choices: readonly (readonly number[])[]): number => verdictsAmong(choices, [yes, no], not);
  t.is(share(yes, no), 1);
  t.is(share(yes, urgent), 0.5);
  t.is(share(urgent, sure), 0);
  t.is(share(urgent, [...not, ...urgent], sure), 2 / 3);
  t.is(share([...not, ...sure], urgent), 0, 'the negation of a choice that is not there');
  t.is(share(sure, [...not, ...sure]), 1);
  t.is(verdictsAmong([sure, urgent], [sure], not), 0.5, 'a word of several tokens');
  t.deepEqual(residualsAmong([urgent, sure], [yes, sure]), [false, true]);
  t.deepEqual(residualsAmong([urgent, [5]], [yes, sure]), [false, false]);
  t.deepEqual(residualsAmong([urgent], []), [false]);
});

test('a choice is a step if the tokens of a known word are among its own, one after the other', (t) => {
  const known = [[1], [2, 3]];
  t.is(scaleStepsAmong([[1], [4, 2, 3], [2, 4, 3], [12]], known), 0.5);
  t.is(scaleStepsAmong([[1]], []), 0);
});

test('what a question leans to is what it gives one choice more than the others without a text', (t) => {
  t.deepEqual([...leaningOf([1, 3, 5], [false, false, false])], [-2, 0, 2]);
  t.deepEqual(
    [...leaningOf([1, 3, 50], [false, false, true])],
    [-1, 1, 0],
    'that none fits is right for an empty text',
  );
  t.deepEqual([...leaningOf([1, 3], [true, true])], [-1, 1]);
});

test('the stack weighs the stages by the features that the rule names', (t) => {
  const rule: StackRule = {
    features: ['one', 'ln_n'],
    alpha: [Math.log(10), 0],
    beta: [0, Math.log(2)],
    aTemperature: [Math.log(0.5), 0],
    lean: 0,
    verdicts: [],
    negation: '',
    residuals: [],
    steps: [],
  };
  const scores = { a: Float64Array.of(0.5, 0.1), b: Float64Array.of(-1, 1), about: 0.3 };
  const z = stackLogits(rule, scores, {
    choices: Math.exp(3),
    closeness: 0,
    optionTokens: 1,
    verdicts: 0,
    residual: false,
    steps: 0,
  });
  t.true(Math.abs((z[0] ?? 0) - (5 - 2)) < 1e-9 && Math.abs((z[1] ?? 0) - (1 + 2)) < 1e-9);
  const further: StackRule = { ...rule, features: ['a_top', 'about'], alpha: [1, 0], beta: [0, 1] };
  const w = stackLogits(further, scores, {
    choices: 2,
    closeness: 0,
    optionTokens: 1,
    verdicts: 0,
    residual: false,
    steps: 0,
  });
  t.true(Math.abs((w[0] ?? 0) - (0.5 * Math.exp(1.5) - Math.exp(0.6))) < 1e-9);
  const plain: StackRule = { ...rule, features: ['verdicts'], alpha: [-1], beta: [0] };
  const v = stackLogits(plain, scores, {
    choices: 2,
    closeness: 0,
    optionTokens: 1,
    verdicts: 0.5,
    residual: false,
    steps: 0,
  });
  t.true(Math.abs((v[0] ?? 0) - (0.5 * Math.exp(-0.5) - 1)) < 1e-9);
  const none: StackRule = { ...rule, features: ['residual'], alpha: [-2], beta: [0] };
  const facts = { choices: 2, closeness: 0, optionTokens: 1, verdicts: 0, residual: false, steps: 0.5 };
  const u = [false, true].map((residual) => stackLogits(none, scores, { ...facts, residual })[0] ?? 0);
  t.true(Math.abs((u[0] ?? 0) - (0.5 - 1)) < 1e-9 && Math.abs((u[1] ?? 0) - (0.5 * Math.exp(-2) - 1)) < 1e-9);
  const scale: StackRule = { ...rule, features: ['steps'], alpha: [-1], beta: [2] };
  const y = stackLogits(scale, scores, facts);
  t.true(Math.abs((y[0] ?? 0) - (0.5 * Math.exp(-0.5) - Math.exp(1))) < 1e-9);
  // Outside the best choices A holds, inside its mass is shared by z.
  const p = composeDistribution(rule, Float64Array.of(0.5, 0.1, 0.1), [0, 1], z);
  const a = [1, 0.2, 0.2].map(Math.exp);
  const sum = a.reduce((x, y) => x + y, 0);
  t.true(Math.abs((p[2] ?? 0) - (a[2] ?? 0) / sum) < 1e-12);
  t.true(Math.abs((p[0] ?? 0) - (p[1] ?? 0)) < 1e-9);
  t.true(Math.abs(p.reduce((x, y) => x + y, 0) - 1) < 1e-12);
  t.true(Math.abs(closenessOf([Float32Array.of(1, 0), Float32Array.of(0, 1)])) < 1e-9);
  t.true(Math.abs(closenessOf([Float32Array.of(1, 0), Float32Array.of(1, 0)]) - 1) < 1e-9);
});
