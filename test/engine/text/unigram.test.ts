/** Unigram's most likely pieces, what reading them costs, and which tokenizers are read so. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import test from 'ava';
import fc from 'fast-check';
import type { PartEncoder } from '../../../src/engine/text/readers.ts';
import { loadTokenizer } from '../../../src/engine/text/tokenizer.ts';
import { unigramEncoder } from '../../../src/engine/text/unigram.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const VOCAB: [string, number][] = [
  ['special <unk>', 0],
  ['special <s>', 0],
  ['▁', -2.0173],
  ['▁the', -3.0391],
  ['▁th', -5.1207],
  ['e', -4.2311],
  ['the', -6.0419],
  ['s', -4.5523],
  ['<', -7.0631],
  ['>', -7.1737],
  ['日', -8.0841],
  ['本', -8.1943],
  ['日本', -9.3049],
  ['😀', -9.4153],
  ['a', -5.5257],
  ['aa', -6.6367],
];
const replaced = (pattern: string, content: string) => ({ type: 'Replace', pattern: { Regex: pattern }, content });
const DEFINITION = {
  version: '1.0',
  added_tokens: [],
  normalizer: { type: 'Sequence', normalizers: [replaced('[\\x01\\x02]', ''), replaced('[\\t\\n\\f\\r ]+', ' ')] },
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  post_processor: null,
  decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  model: { type: 'Unigram', unk_id: 0, byte_fallback: false, vocab: VOCAB },
};

const encodeParts = unigramEncoder(DEFINITION) as PartEncoder;
const encode = (text: string): readonly number[] => [...encodeParts(text)].flat();
const idsOf = (...names: string[]) => names.map((name) => VOCAB.findIndex(([piece]) => piece === name));

test('the most likely pieces of every word', (t) => {
  t.deepEqual(encode('the thes'), idsOf('▁the', '▁the', 's'));
  t.deepEqual(encode('日本'), idsOf('▁', '日本'));
  t.deepEqual(encode('😀😀'), idsOf('▁', '😀', '😀'));
});

test('white space and its mark are one space, and one at the end is a token', (t) => {
  t.deepEqual(encode(' the\t\n the'), idsOf('▁the', '▁the'));
  t.deepEqual(encode('the▁the'), idsOf('▁the', '▁the'));
  t.deepEqual(encode('the '), idsOf('▁the', '▁'));
  t.deepEqual(encode('t\u0001he'), idsOf('▁the'));
  t.deepEqual(encode(''), []);
});

test('a run of unknown characters is one token, and special tokens in a text are plain text', (t) => {
  t.deepEqual(encode('ភាសា日'), idsOf('▁', 'special <unk>', '日'));
  t.deepEqual(encode('<s>'), idsOf('▁', '<', 's', '>'));
  t.false(encode('special <s>').includes(1));
});

test('the pieces are those of the library', (t) => {
  const library = new Tokenizer(DEFINITION, {});
  const text = fc
    .array(fc.constantFrom('the', 't', 'h', 'e', 's', ' ', '  ', '\n', '<', '>', '日', '本', '😀', 'a', 'x', '\u0001'))
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, (read) => {
      t.deepEqual(encode(read), library.encode(read, { add_special_tokens: false }).ids, JSON.stringify(read));
    }),
    { numRuns: 500 },
  );
});

test('a word without end costs no more a character than a short one', (t) => {
  const all = 320_000;
  /** CPU time, which ticks coarsely, of so many characters in words of a length. */
  const timed = (length: number): number => {
    const text = 'a'.repeat(length);
    const started = process.threadCpuUsage();
    for (let read = 0; read < all; read += length) encode(text);
    const { user, system } = process.threadCpuUsage(started);
    return (user + system) / 1000;
  };
  timed(20_000);
  const short = Math.min(...[1, 2, 3].map(() => timed(10_000)));
  const long = Math.min(...[1, 2, 3].map(() => timed(all)));
  t.true(long < 8 * short, `${long} ms against ${short}`);
});

test('ids come in parts, whether words are short or one is long', (t) => {
  for (const text of ['the thes '.repeat(3500), 'a'.repeat(30_000), ` ${'日本'.repeat(15_000)}`]) {
    const parts = [...encodeParts(text)];
    t.true(parts.length >= 7, `${parts.length} parts`);
    t.deepEqual(parts.flat(), encode(text));
  }
  t.deepEqual([...encodeParts('the thes')].length, 1);
});

test('what is not of this form is left to the library', (t) => {
  const { model, pre_tokenizer: splitter } = DEFINITION;
  for (const other of [
    { ...DEFINITION, model: { ...model, type: 'WordPiece' } },
    { ...DEFINITION, model: { ...model, byte_fallback: true } },
    { ...DEFINITION, model: { ...model, unk_id: null } },
    { ...DEFINITION, normalizer: { type: 'Precompiled' } },
    { ...DEFINITION, pre_tokenizer: { ...splitter, prepend_scheme: 'first' } },
    { ...DEFINITION, pre_tokenizer: { type: 'Sequence' } },
    { ...DEFINITION, added_tokens: [{ id: 1, content: '<s>' }] },
  ])
    t.is(unigramEncoder(other), undefined, JSON.stringify(other));
  t.throws(() => unigramEncoder({ ...DEFINITION, model: { ...model, vocab: [['a']] } }), { message: /piece 0/ });
  t.throws(() => unigramEncoder({ ...DEFINITION, model: { ...model, vocab: [] } }), { message: /no pieces/ });
});

test('packages are read so: a long word costs little, and the ids are the same by parts', async (t) => {
  const folder = temporaryFolder();
  const path = join(folder, 'tokenizer.json');
  await writeFile(path, JSON.stringify(DEFINITION));
  const { ids, reader } = await loadTokenizer(path);
  t.deepEqual(ids('aaa'), encode('aaa'));
  const text = 'the 日本 thes '.repeat(10_000);
  const parts = reader();
  const found: number[] = [];
  for (let at = 0; at < text.length; at += 1000)
    for (const part of parts.read(text.slice(at, at + 1000))) found.push(...part);
  for (const part of parts.end()) found.push(...part);
  t.deepEqual(found, encode(text));
});
