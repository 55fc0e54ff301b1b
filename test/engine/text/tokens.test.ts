/** What tokenising costs, what it must not change, and which tokens a model has no words for. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import test from 'ava';
import fc from 'fast-check';
import { boundedTokens } from '../../../src/engine/text/bounded-tokens.ts';
import { createPlainReader, createRewritingReader, type TextReader } from '../../../src/engine/text/readers.ts';
import { streamSafe } from '../../../src/engine/text/stream-safe.ts';
import { loadTokenizer } from '../../../src/engine/text/tokenizer.ts';
import { unreadOfPieces } from '../../../src/engine/text/unread.ts';
import { shippedModels } from '../support/engine.ts';

const path = join(shippedModels, 'minilm-l6', 'r2', 'tokenizer.json');
const definition = JSON.parse(await readFile(path, 'utf8'));
const library = new Tokenizer(definition, {});
const own = await loadTokenizer(path);
const byLibrary = (text: string): readonly number[] => library.encode(text, { add_special_tokens: false }).ids;

/** Of every kind that a rule of the tokenizer's looks at. */
const piece = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('word', 'unaffable ', 'The', ' ', '  ', '\n', '\t', 'x', 'zq', '12', 'a'.repeat(101)),
  },
  { weight: 3, arbitrary: fc.constantFrom('.', "'", ',', '?', '…', '。', '<', '[SEP]', '##ing', '-', '_') },
  {
    weight: 3,
    arbitrary: fc.constantFrom('é', 'e\u0301', '\u0301', '\u0315\u0300', 'ﬁ', 'İ', 'ẞ', '\u0345', '\u093e', '\uff9e'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(...'中 文字 カ 한국 😀 👨‍👩‍👧 \u200b \u0000 \ufffd \u00ad \ue000'.split(' ')),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom('ΟΔΟΣ', 'Σ ', 'οδός', 'ДОМ', 'ไทย', 'हिन्दी', 'العربية', 'שלום') },
);
const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));

test('tokens are those of the library, whole and wherever a text without a sigma is cut', (t) => {
  fc.assert(
    fc.property(text, fc.array(fc.nat(), { maxLength: 4 }), (whole, cuts) => {
      const expected = byLibrary(whole);
      t.deepEqual(own.ids(whole), expected);
      if (/[Σσς]/.test(whole)) return;
      const reader = own.reader();
      const ids: number[] = [];
      let from = 0;
      for (const cut of cuts.map((each) => each % (whole.length + 1)).sort((a, b) => a - b)) {
        const inside = /[\ud800-\udbff]/.test(whole.charAt(cut - 1));
        if (inside) continue;
        ids.push(...[...reader.read(whole.slice(from, cut))].flat());
        from = cut;
      }
      ids.push(...[...reader.read(whole.slice(from)), ...reader.end()].flat());
      t.deepEqual(ids, expected);
    }),
    { numRuns: 3000 },
  );
});

test('a long text has the tokens that it has at once, whatever it is made of', async (t) => {
  const long = [
    'plain words, in sentences. '.repeat(700),
    '中文没有空格'.repeat(2500),
    'a'.repeat(20_000),
    'ΟΔΟΣ οδός '.repeat(1500),
    `${'.'.repeat(9000)}${'e\u0301'.repeat(5000)}`,
    'カタカナ、ひらがな。'.repeat(1500),
    '😀👍'.repeat(4000),
  ];
  for (const whole of long) {
    const read = await boundedTokens(own, whole, 1e6, async () => {});
    t.deepEqual(read, { kind: 'tokens', ids: byLibrary(whole) }, whole.slice(0, 20));
  }
});

/** A reader whose tokens are characters, with the most that it was given at once. */
function countingReader(): TextReader & { readonly most: () => number } {
  let most = 0;
  const reader = createPlainReader((part) => {
    most = Math.max(most, part.length);
    return [Array.from(part, (character) => character.codePointAt(0) as number)];
  });
  return { ...reader, most: () => most };
}

test('a tokenizer is given no more at once where characters become long names', async (t) => {
  const name = ' a symbol that has a name of some length, as there are ';
  const symbols = '\u2a7d'.repeat(2_000);
  const named = name.repeat(2_000);
  const whole = countingReader();
  t.is([...whole.read(named), ...whole.end()].flat().length, named.length);
  t.true(whole.most() <= 1 << 15, `${whole.most()} characters`);

  const inner = countingReader();
  let pauses = 0;
  const reader = () => createRewritingReader(inner, (piece) => piece.replaceAll('\u2a7d', name));
  const read = await boundedTokens({ reader }, symbols, 1e9, async () => {
    pauses += 1;
  });
  t.deepEqual(read, { kind: 'tokens', ids: Array.from(named, (character) => character.codePointAt(0) as number) });
  t.true(inner.most() <= 1 << 15, `${inner.most()} characters`);
  t.true(pauses >= named.length / (1 << 15), `${pauses} pauses`);
});

test('what long names become by the rules of words is what they become at once', async (t) => {
  const reader = () =>
    createRewritingReader(own.reader(), (piece) => piece.replaceAll('\u2a7d', ' less-than or slanted '));
  const read = await boundedTokens({ reader }, 'a\u2a7db'.repeat(500), 1e6, async () => {});
  t.deepEqual(read, { kind: 'tokens', ids: byLibrary('a less-than or slanted b'.repeat(500)) });
});

test('a text without long runs of marks is left as it is', (t) => {
  fc.assert(
    fc.property(text, (each) => streamSafe(each) === each),
    { numRuns: 2000 },
  );
  const run = `a${'\u0315\u0300'.repeat(15)}`;
  t.is(streamSafe(run), run);
  t.is(streamSafe(`${run}b${run}`), `${run}b${run}`);
  // Vowel signs are marks, but starters.
  const vowels = `क${'\u093e'.repeat(50)}`;
  t.is(streamSafe(vowels), vowels);
});

test('a longer run is parted every 30 marks, whatever a normaliser drops from it', (t) => {
  const parted = (whole: string): readonly number[] =>
    streamSafe(whole)
      .split('\u034f')
      .map((part) => [...part].length);
  t.deepEqual(parted(`a${'\u0315\u0300'.repeat(40)}`), [31, 30, 20]);
  t.is(streamSafe(`a${'\u0315\u200b\u0300\ufffd'.repeat(40)}`).split('\u034f').length, 3);
  t.is(streamSafe(`a${'\u0301\uff9e'.repeat(40)}`).split('\u034f').length, 3, 'marks by compatibility');
  t.is(streamSafe('\u0344'.repeat(31)).split('\u034f').length, 3, 'two marks in one character');
  t.deepEqual(own.ids(`a${'\u0315\u0300'.repeat(40)}`), byLibrary(`a${'\u0315\u0300'.repeat(40)}`));
});

/** Texts that a tokenizer would take most time over, 16 Ki characters and 16 times as many. */
const HOSTILE: Readonly<Record<string, string>> = {
  'marks of two classes': '\u0315\u0300',
  'marks of many classes': '\u0345\u0315\u0301\u0316\u0327\u0334\u05b0\u3099',
  'marks and what is dropped between them': '\u0315\u200b\u0300\u0000',
  'marks that are two': '\u0344\u0315',
  'words with an unknown end': `${'q'.repeat(98)}\u{1f600} `,
  'words of unknown letters': `${'\u0e01'.repeat(100)} `,
  'one word': 'a',
  'white space': ' \n',
  points: '.',
  ideographs: '中',
  'symbols with long names': '\u2a7d',
  sigmas: 'Σ',
  'half surrogate pairs': '\ud800',
};
for (const [what, unit] of Object.entries(HOSTILE)) {
  test.serial(
    `the time for ${what} grows with their number alone, and nothing works on more than a piece`,
    async (t) => {
      const time = async (length: number): Promise<{ readonly all: number; readonly longest: number }> => {
        const whole = unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
        const began = process.cpuUsage();
        let longest = 0;
        let since = process.cpuUsage();
        const cpu = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;
        await boundedTokens(own, whole, 1e9, async () => {
          longest = Math.max(longest, cpu(process.cpuUsage(since)));
          since = process.cpuUsage();
        });
        return { all: cpu(process.cpuUsage(began)), longest };
      };
      await time(1 << 14);
      const small = await time(1 << 14);
      const large = await time(1 << 18);
      t.true(large.all < 16 * 4 * Math.max(small.all, 4), `${small.all} ms, then ${large.all} ms`);
      t.true(large.longest < 250, `${large.longest} ms at a time`);
    },
  );
}

const SHARES: readonly (readonly [text: string, share: number])[] = [
  ['I was charged twice for my order', 0],
  ['order ORD-123456 asap pls', 0],
  ['123 456 ... !', 0],
  ['', 0],
  ["Je n'ai pas reçu ma commande", 0],
  ['Hi Zbigniew', 0.8],
  ['recieve teh refund', 3 / 7],
  ['Wo bleibt mein Paket?', 3 / 7],
  ['Mir wurde die Rechnung doppelt abgebucht, bitte erstatten Sie den Betrag', 0.54],
  ['Где моя посылка?', 1],
  ['我的包裹在哪里', 1],
  ['सहायता', 1],
  ['សូមជួយ', 1],
];

test('spelt words, other scripts and unknown ones are unread; numbers and punctuation are no words', async (t) => {
  const { ids, unreadShare } = await loadTokenizer(join(shippedModels, 'minilm-l6/r2/tokenizer.json'));
  for (const [text, share] of SHARES) t.is(unreadShare?.(ids(text)).toFixed(2), share.toFixed(2), text);
});

const PIECES = ['special <unk>', ...'▁ ▁hello lo ▁привет ก ▁กา 日 ▁日本 語 글 ქ ▁ქ ა e \u0301 ! 7'.split(' ')];
const idsOf = (...found: readonly string[]) => found.map((piece) => PIECES.indexOf(piece));

const SPELT: readonly (readonly [ids: readonly number[], share: number])[] = [
  [[], 0],
  [idsOf('▁hello', 'special <unk>', 'lo', 'special <unk>'), 0.5],
  // Letters that are in words, too, Chinese characters and Korean syllables.
  [idsOf('▁', 'ก', '語', '日', '글', 'e'), 0],
  [idsOf('▁ქ', 'ა', 'ქ', 'ა'), 1],
  [idsOf('▁hello', '▁ქ', 'ა', '▁привет'), 0.5],
  // Marks, numbers and punctuation say nothing.
  [idsOf('▁ქ', '́', 'ა', '!', '7', '▁'), 1],
  [idsOf('!', '7', '▁'), 0],
];

test('of pieces in many languages unknown ones are unread, and letters of scripts without words', (t) => {
  const share = unreadOfPieces(PIECES, 0);
  for (const [ids, expected] of SPELT) t.is(share(ids), expected, ids.map((id) => PIECES[id]).join());
});
