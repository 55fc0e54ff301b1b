/** Packages that are made of exports: they decide as the model does, and hold nothing that a package must not have. */
import { mkdir, readdir, readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { checkPackage } from '../../../src/engine/package-tools/check.ts';
import { type PackRequest, packExport, USUAL_CANARY } from '../../../src/engine/package-tools/pack.ts';
import { plainTokenizer } from '../../../src/engine/package-tools/plain-tokenizer.ts';
import { readManifest } from '../../../src/engine/packages/manifest.ts';
import { createTokenizer, readTokenizer } from '../../../src/engine/text/tokenizer.ts';
import { job, probabilitiesOf, startEngine, terms } from '../support/engine.ts';
import {
  encoderGraph,
  exportedEncoderGraph,
  modelsFolder,
  publishedTokenizer,
  tokenId,
  writeExport,
  writePackage,
} from '../support/packages.ts';

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const CANARY = { input: 'abcabc', instruction: 'abc', choices: ['abc', 'xyz'], choice: 'abc' };

const requestOf = (exported: string, modelsDir: string, changes: Partial<PackRequest> = {}): PackRequest => ({
  exported,
  modelsDir,
  id: 'mine',
  revision: 'r1',
  ownedBy: 'tests',
  isDefault: true,
  limits: {},
  temperature: 0.5,
  jointWeight: 0.25,
  canary: CANARY,
  logger,
  ...changes,
});

test('an ordinary export becomes a package that decides as the model does', async (t) => {
  const [exported, modelsDir] = [await modelsFolder(t), await modelsFolder(t)];
  await writeExport(exported, { LICENSE: 'words' });
  // A command that was ended hours ago has left one of these; another is at work.
  const [left, atWork] = [join(modelsDir, '.packing-left'), join(modelsDir, '.packing-at-work')];
  for (const folder of [left, atWork]) await mkdir(join(folder, 'mine', 'r1'), { recursive: true });
  const hoursAgo = new Date(Date.now() - 7_200_000);
  await utimes(left, hoursAgo, hoursAgo);
  const packed = await packExport(requestOf(exported, modelsDir));
  t.like(packed, { pooling: 'mean', output: 'last_hidden_state', removed: ['[UNK]', '[CLS]', '[SEP]'] });
  // 64 positions, three of which are for special tokens.
  t.deepEqual(packed.limits, { inputTokens: 61, candidateTokens: 61, choices: 300 });
  t.deepEqual((await readdir(packed.folder)).sort(), ['LICENSE', 'model.json', 'model.onnx', 'tokenizer.json']);
  t.deepEqual((await readdir(modelsDir)).sort(), ['.packing-at-work', 'mine'], 'nothing else is left beside it');
  t.is((await checkPackage({ modelsDir, logger }, 'mine', 'r1')).kind, 'sound');

  await writePackage(modelsDir);
  const engine = await startEngine(t, { modelsDir });
  for (const input of ['abc abd', 'zebra', 'a', 'some more words with 1234']) {
    const own = job({ model: 'mine', input, choices: ['abc', 'xyz', 'm n'] });
    const [mine, pooledInGraph] = await Promise.all([
      engine.score(own, terms()),
      engine.score({ ...own, model: 'tiny' }, terms()),
    ]);
    const [a, b] = [probabilitiesOf(own, mine), probabilitiesOf(own, pooledInGraph)];
    for (const [choice, probability] of Object.entries(a)) t.true(Math.abs(probability - (b[choice] ?? 0)) < 1e-5);
  }
});

test('with the first token’s vector, with an output that is pooled already, and with a graph in its folder', async (t) => {
  const exported = await modelsFolder(t);
  const modelsDir = await modelsFolder(t);
  await writeExport(exported, {
    '1_Pooling/config.json': JSON.stringify({ pooling_mode_cls_token: true }),
    'model.onnx': exportedEncoderGraph(64, 'token_embeddings'),
  });
  t.like(await packExport(requestOf(exported, modelsDir)), { pooling: 'cls', output: 'token_embeddings' });
  await writeExport(exported, { 'model.onnx': encoderGraph(), '1_Pooling/config.json': '{}' });
  t.like(await packExport(requestOf(exported, modelsDir, { revision: 'r2' })), {
    pooling: 'none',
    output: 'embedding',
  });
});

const REFUSALS: readonly (readonly [
  what: string,
  files: Record<string, string | Uint8Array>,
  changes: Partial<PackRequest>,
  problem: RegExp,
])[] = [
  ['a name', {}, { id: 'Mine' }, /the id 'Mine' must match/],
  [
    'an export without pooling',
    { '1_Pooling/config.json': '{}' },
    {},
    /does not say how vectors are pooled: --pooling/,
  ],
  ['an output that is not there', {}, { output: 'logits' }, /no output logits, but last_hidden_state/],
  [
    'a tokenizer without a template',
    { 'tokenizer.json': JSON.stringify({ ...publishedTokenizer(), post_processor: null }) },
    {},
    /no template with a token before/,
  ],
  [
    'limits above the positions',
    {},
    { limits: { inputTokens: 100 } },
    /limits.input_tokens is 100, but the graph reads at most 64 tokens, 3 of which are not the text's: lower it to 61/,
  ],
  ['a canary that is wrong', {}, { canary: { ...CANARY, choice: 'xyz' } }, /the canary chose "abc" instead of "xyz"/],
];
for (const [what, files, changes, problem] of REFUSALS) {
  test(`refused: ${what}`, async (t) => {
    const [exported, modelsDir] = [await modelsFolder(t), await modelsFolder(t)];
    await writeExport(exported, files);
    await t.throwsAsync(packExport(requestOf(exported, modelsDir, changes)), { message: problem });
    t.deepEqual(await readdir(modelsDir), []);
  });
}

test('the package that the guide shows is one that is made', async (t) => {
  const guide = await readFile(new URL('../../../docs/models.md', import.meta.url), 'utf8');
  const shown = /^```json\n([\s\S]*?)^```$/m.exec(guide)?.[1] ?? '';
  const whole = shown.replaceAll(/"sha256": "[0-9a-f]+…"/g, `"sha256": "${'0'.repeat(64)}"`);
  t.deepEqual(readManifest(whole, 'my-encoder', 'r1').problems, []);
  const [exported, modelsDir] = [await modelsFolder(t), await modelsFolder(t)];
  await writeExport(exported, { 'config.json': '{}', 'model.onnx': exportedEncoderGraph(512) });
  const { temperature, jointWeight, canary: _, ...asked } = requestOf(exported, modelsDir);
  t.deepEqual([temperature, jointWeight], [0.5, 0.25]);
  const { folder, limits } = await packExport({ ...asked, canary: CANARY, ownedBy: 'local' });
  const made = JSON.parse(await readFile(join(folder, 'model.json'), 'utf8'));
  const named = JSON.parse(whole);
  t.deepEqual(limits, { inputTokens: 509, candidateTokens: 96, choices: 300 });
  t.deepEqual(Object.keys(named), Object.keys(made));
  t.deepEqual(named.limits, made.limits);
  t.deepEqual({ ...named.options, special_tokens: made.options.special_tokens }, made.options);
  t.deepEqual(named.canary, USUAL_CANARY);
});

test('a package is never packed over', async (t) => {
  const [exported, modelsDir] = [await modelsFolder(t), await modelsFolder(t)];
  await writeExport(exported);
  await packExport(requestOf(exported, modelsDir));
  await t.throwsAsync(packExport(requestOf(exported, modelsDir)), { message: /exists; a change is a new revision/ });
});

test('the tokenizer of a package is the published one without its control tokens', async (t) => {
  const published = publishedTokenizer();
  const { text, cls, sep } = plainTokenizer(JSON.stringify(published));
  t.deepEqual([cls, sep], [tokenId('[CLS]'), tokenId('[SEP]')]);
  const [before, after] = [readTokenizer(published), createTokenizer(JSON.parse(text))];
  t.deepEqual(after.ids('abc 12 xyz'), before.ids('abc 12 xyz'));
  t.true(before.ids('abc [SEP]').includes(sep));
  t.false(after.ids('abc [SEP] [CLS]').some((id) => id === sep || id === cls));
});

test('a vocabulary that is matched as it stands has its control tokens renamed', (t) => {
  const pieces = ['<s>', '<pad>', '</s>', '<unk>', '▁', 'a', 'b', 's', '<', '/', '>'];
  const published = {
    version: '1.0',
    added_tokens: [0, 1, 2, 3].map((id) => ({
      id,
      content: pieces[id],
      special: true,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
    })),
    normalizer: null,
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    post_processor: {
      type: 'RobertaProcessing',
      sep: ['</s>', 2],
      cls: ['<s>', 0],
      trim_offsets: true,
      add_prefix_space: false,
    },
    decoder: null,
    model: {
      type: 'Unigram',
      unk_id: 3,
      vocab: pieces.map((piece, id) => [piece, id < 4 ? 0 : -2]),
      byte_fallback: false,
    },
  } as const;
  t.throws(() => createTokenizer({ ...published, added_tokens: [] } as never), {
    message: /reads control tokens in a text.*"<s>", "<pad>", "<\/s>"/,
  });
  const { text, cls, sep, removed } = plainTokenizer(JSON.stringify(published));
  t.deepEqual([cls, sep, removed.length], [0, 2, 4]);
  const { ids } = createTokenizer(JSON.parse(text));
  t.deepEqual(ids('ab'), [4, 5, 6]);
  t.deepEqual(ids('a</s>'), [4, 5, 8, 9, 7, 10]);
});

test('numbers in brackets are pieces like others, names in brackets are control tokens', (t) => {
  const unigram = (...pieces: readonly string[]) => ({
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    model: { type: 'Unigram', unk_id: 0, vocab: ['unknown', '▁', ...pieces].map((piece) => [piece, -1] as const) },
  });
  const { ids } = createTokenizer(unigram('[10]', '[1_0]', '[') as never);
  t.deepEqual(ids('[10]'), [1, 2]);
  for (const control of ['[SEP]', '[C10]', '[unused1]'.toUpperCase(), '<s>', '<10>'])
    t.throws(() => createTokenizer(unigram(control) as never), { message: /reads control tokens in a text/ }, control);
});

test('a package with a tokenizer as it was published is refused', async (t) => {
  const modelsDir = await modelsFolder(t);
  const folder = await writePackage(modelsDir, { tokenizer: publishedTokenizer() });
  t.true((await readFile(join(folder, 'tokenizer.json'), 'utf8')).includes('special'));
  const check = await checkPackage({ modelsDir, logger }, 'tiny', 'r1');
  t.regex(
    check.kind === 'broken' ? check.problems.join() : check.kind,
    /reads control tokens in a text.*"\[UNK\]", "\[CLS\]", "\[SEP\]"/,
  );
});

const OPTIONS: readonly (readonly [what: string, source: object, problem: RegExp])[] = [
  [
    'a misspelt option',
    { options: { joint_weigth: 0.3 } },
    /^options.joint_weigth is unknown; known are .*joint_weight/,
  ],
  [
    'a misspelt option inside another',
    { options: { special_tokens: { cls: 1, sep: 2, spe: 3 } } },
    /^options.special_tokens.spe is unknown/,
  ],
  [
    'a temperature',
    { options: { temperature: 'hot' } },
    /^options.temperature must be a number from .*, or \{ "points"/,
  ],
  ['pooling', { options: { pooling: 'max' } }, /^options.pooling must be one of none, mean, cls/],
  [
    'an output that is not there',
    { graph: exportedEncoderGraph(64) },
    /^the graph has no output "embedding", but "last_hidden_state"; options.output names it/,
  ],
  [
    'pooling of what is pooled',
    { options: { pooling: 'mean', output: 'embedding' } },
    /has the shape \[1,8\], not \[1, \d+, width\]/,
  ],
  [
    'no pooling of what is not',
    { graph: exportedEncoderGraph(64), options: { output: 'last_hidden_state' } },
    /has the shape \[1,\d+,8\], not \[1, width\]: options.pooling/,
  ],
  [
    'limits above the graph’s positions',
    { graph: exportedEncoderGraph(32), options: { pooling: 'mean' } },
    /^limits.input_tokens is 40, but the graph reads at most 32 tokens, 3 of which are not the text's: lower it to 29/,
  ],
];
for (const [what, source, problem] of OPTIONS) {
  test(`a fault is explained: ${what}`, async (t) => {
    const check = await checkPackage({ modelsDir: await modelsFolder(t, source), logger }, 'tiny', 'r1');
    t.regex(check.kind === 'broken' ? check.problems.join('\n') : check.kind, problem);
  });
}
