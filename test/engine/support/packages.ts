/** Small packages that tests write: tokens are letters and digits, graphs run in microseconds, or slowly on demand. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type GraphSource, type Operator, onnxModel } from './onnx.ts';

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz0123456789'];
const VOCABULARY = [
  '[UNK]',
  '[CLS]',
  '[SEP]',
  ...LETTERS,
  ...LETTERS.map((letter) => `##${letter}`),
  '$',
  '&',
  '{',
  '}',
  '[',
  ']',
];
const WIDTH = 8;

/** The id of a token of the small vocabulary. */
export function tokenId(token: string): number {
  return VOCABULARY.indexOf(token);
}

/** What a test may change of a package. */
export interface PackageSource {
  readonly id?: string;
  readonly revision?: string;
  readonly graph?: Uint8Array;
  readonly tokenizer?: object;
  readonly manifest?: Readonly<Record<string, unknown>>;
  /** Further files that the manifest lists. */
  readonly files?: Readonly<Record<string, Uint8Array>>;
  /** Merged into the family's options. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A sound bi-encoder `tiny@r1`: a package without changes. */
export const TINY: PackageSource = {};

/** A models folder with these packages. It goes away with the test. */
export async function modelsFolder(
  t: ExecutionContext<unknown>,
  ...packages: readonly PackageSource[]
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'models-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const each of packages) await writePackage(folder, each);
  return folder;
}

/** Writes a package and returns its folder. Without changes it is `TINY`. */
export async function writePackage(modelsDir: string, source = TINY): Promise<string> {
  const { id = 'tiny', revision = 'r1', graph = encoderGraph(), files = {} } = source;
  const folder = join(modelsDir, id, revision);
  await mkdir(folder, { recursive: true });
  const tokenizer = Buffer.from(JSON.stringify(source.tokenizer ?? TOKENIZER_DEFINITION));
  const manifest = {
    schema: 1,
    id,
    revision,
    family: 'bi-encoder',
    owned_by: 'tests',
    status: 'ready',
    default: true,
    limits: { input_tokens: 40, candidate_tokens: 12, choices: 300 },
    files: { 'model.onnx': listed(graph), 'tokenizer.json': listed(tokenizer), ...mapValues(files, listed) },
    options: {
      graph: 'model.onnx',
      tokenizer: 'tokenizer.json',
      joint_weight: 0.25,
      temperature: 0.5,
      special_tokens: { cls: tokenId('[CLS]'), sep: tokenId('[SEP]'), unk: tokenId('[UNK]') },
      ...source.options,
    },
    canary: { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'abc' },
    ...source.manifest,
  };
  await writeFile(join(folder, 'model.onnx'), graph);
  await writeFile(join(folder, 'tokenizer.json'), tokenizer);
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  await writeFile(join(folder, 'model.json'), JSON.stringify(manifest));
  return folder;
}

function mapValues<T, R>(record: Readonly<Record<string, T>>, map: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}

/** The entry of a file in a manifest. */
export function listed(content: Uint8Array): { readonly sha256: string; readonly bytes: number } {
  return { sha256: createHash('sha256').update(content).digest('hex'), bytes: content.length };
}

/** A sentence encoder: the mean of its tokens' embeddings, normalised. `seed` makes different models. */
export function encoderGraph(seed = 1): Uint8Array {
  return onnxModel(encoderSource(seed));
}

/**
 * The same encoder, but every run first multiplies a 512 × 512 matrix `products` times with itself: some 5 to 20 ms
 * each. The embeddings are the same.
 */
export function slowEncoderGraph(products: number, seed = 1): Uint8Array {
  const { constants, operators, output } = encoderSource(seed);
  const size = 512;
  // Zero times the product is added, so that no optimiser can leave it out: it depends on the input.
  const work: Operator[] = [
    { type: 'Cast', inputs: ['input_ids'], output: 'floats', attributes: { to: 1 } },
    { type: 'ReduceMean', inputs: ['floats'], output: 'mean_id', attributes: { keepdims: 0 } },
    { type: 'Mul', inputs: ['matrix', 'mean_id'], output: 'product_0' },
  ];
  for (let i = 0; i < products; i++) {
    work.push({ type: 'MatMul', inputs: [`product_${i}`, 'matrix'], output: `product_${i + 1}` });
  }
  return onnxModel({
    constants: [
      ...constants,
      { name: 'matrix', dims: [size, size], values: new Float32Array(size * size).fill(1e-3) },
      { name: 'zero', dims: [], values: Float32Array.of(0) },
    ],
    operators: [
      ...work,
      { type: 'ReduceMean', inputs: [`product_${products}`], output: 'work_mean', attributes: { keepdims: 0 } },
      { type: 'Mul', inputs: ['work_mean', 'zero'], output: 'nothing' },
      ...operators.map((operator) => (operator.output === 'embedding' ? { ...operator, output: 'pure' } : operator)),
      { type: 'Add', inputs: ['pure', 'nothing'], output: 'embedding' },
    ],
    output,
  });
}

/**
 * The same encoder as it is usually exported: with a mask, types of tokens and positions, of which there are so many,
 * and a vector for each token. Their mean, normalised, is the encoder's embedding.
 */
export function exportedEncoderGraph(positions: number, output = 'last_hidden_state'): Uint8Array {
  return onnxModel({
    inputs: ['attention_mask', 'token_type_ids'],
    constants: [
      ...encoderSource(1).constants,
      { name: 'positions', dims: [positions, WIDTH], values: new Float32Array(positions * WIDTH) },
      // Only the first type changes nothing.
      {
        name: 'types',
        dims: [2, WIDTH],
        values: Float32Array.from({ length: 2 * WIDTH }, (_, i) => (i < WIDTH ? 0 : i)),
      },
      { name: 'one', dims: [], values: BigInt64Array.of(1n) },
      { name: 'last', dims: [1], values: BigInt64Array.of(2n) },
    ],
    operators: [
      { type: 'Gather', inputs: ['table', 'input_ids'], output: 'words' },
      { type: 'CumSum', inputs: ['attention_mask', 'one'], output: 'counted' },
      { type: 'Sub', inputs: ['counted', 'one'], output: 'places' },
      { type: 'Gather', inputs: ['positions', 'places'], output: 'placed' },
      { type: 'Gather', inputs: ['types', 'token_type_ids'], output: 'typed' },
      { type: 'Add', inputs: ['words', 'placed'], output: 'words_placed' },
      { type: 'Add', inputs: ['words_placed', 'typed'], output: 'all' },
      { type: 'Cast', inputs: ['attention_mask'], output: 'mask', attributes: { to: 1 } },
      { type: 'Unsqueeze', inputs: ['mask', 'last'], output: 'mask_wide' },
      { type: 'Mul', inputs: ['all', 'mask_wide'], output },
    ],
    output: { name: output, width: WIDTH, perToken: true },
  });
}

/** The small tokenizer as it is usually published: with control tokens that are found in texts, and a template. */
export const publishedTokenizer = () => {
  const control = (content: string) => ({
    id: tokenId(content),
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  });
  const [cls, sep] = ['[CLS]', '[SEP]'].map((id) => [id, { id, ids: [tokenId(id)], tokens: [id] }] as const);
  const special = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  return {
    ...TOKENIZER_DEFINITION,
    truncation: { max_length: 128, strategy: 'LongestFirst', stride: 0, direction: 'Right' },
    added_tokens: ['[UNK]', '[CLS]', '[SEP]'].map(control),
    post_processor: {
      type: 'TemplateProcessing',
      single: [special('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, special('[SEP]')],
      pair: [],
      special_tokens: Object.fromEntries([cls, sep].filter((each) => each !== undefined)),
    },
  };
};

/** Writes an export as Hugging Face's tools do. */
export async function writeExport(
  folder: string,
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<void> {
  const all: Readonly<Record<string, string | Uint8Array>> = {
    'model.onnx': exportedEncoderGraph(64),
    'tokenizer.json': JSON.stringify(publishedTokenizer()),
    'config.json': JSON.stringify({ model_type: 'bert', max_position_embeddings: 64 }),
    '1_Pooling/config.json': JSON.stringify({ pooling_mode_mean_tokens: true }),
    ...files,
  };
  for (const [name, content] of Object.entries(all)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
}

/** A cross-encoder whose entailment is the share of tokens that are `letter`, times 10; with all three usual inputs. */
export function entailmentGraph(letter: string): Uint8Array {
  const values = new Float32Array(VOCABULARY.length * 3);
  for (const token of [letter, `##${letter}`]) values[tokenId(token) * 3] = 10;
  return onnxModel({
    inputs: ['attention_mask', 'token_type_ids'],
    constants: [{ name: 'table', dims: [VOCABULARY.length, 3], values }],
    operators: [
      { type: 'Mul', inputs: ['input_ids', 'attention_mask'], output: 'masked' },
      { type: 'Gather', inputs: ['table', 'masked'], output: 'tokens' },
      { type: 'Cast', inputs: ['token_type_ids'], output: 'types', attributes: { to: 1 } },
      { type: 'ReduceMean', inputs: ['types'], output: 'share', attributes: { keepdims: 0 } },
      { type: 'ReduceMean', inputs: ['tokens'], output: 'mean', attributes: { axes: [1], keepdims: 0 } },
      { type: 'Add', inputs: ['mean', 'share'], output: 'logits' },
    ],
    output: { name: 'logits', width: 3 },
  });
}

/** A reader of packs whose score for an option is the place of its first token in the vocabulary, in tenths. */
export function packReaderGraph(): Uint8Array {
  return onnxModel({
    inputs: ['position_ids', 'block_ids'],
    markers: true,
    constants: [
      { name: 'one', dims: [], values: BigInt64Array.of(1n) },
      { name: 'tenth', dims: [], values: Float32Array.of(0.1) },
      { name: 'zero', dims: [], values: Float32Array.of(0) },
    ],
    operators: [
      { type: 'Add', inputs: ['markers', 'one'], output: 'firsts' },
      { type: 'Squeeze', inputs: ['input_ids'], output: 'ids' },
      { type: 'Gather', inputs: ['ids', 'firsts'], output: 'tokens' },
      { type: 'Cast', inputs: ['tokens'], output: 'floats', attributes: { to: 1 } },
      { type: 'Mul', inputs: ['floats', 'tenth'], output: 'places' },
      // The other inputs must have the right length, but do not count.
      { type: 'Add', inputs: ['position_ids', 'block_ids'], output: 'sums' },
      { type: 'Add', inputs: ['sums', 'input_ids'], output: 'all' },
      { type: 'Cast', inputs: ['all'], output: 'all_floats', attributes: { to: 1 } },
      { type: 'ReduceMean', inputs: ['all_floats'], output: 'mean', attributes: { keepdims: 0 } },
      { type: 'Mul', inputs: ['mean', 'zero'], output: 'nothing' },
      { type: 'Add', inputs: ['places', 'nothing'], output: 'scores' },
    ],
    output: { name: 'scores', width: 'options' },
  });
}

function encoderSource(seed: number): GraphSource {
  const values = Float32Array.from({ length: VOCABULARY.length * WIDTH }, (_, i) => Math.sin((i + 1) * 12.9898 * seed));
  return {
    constants: [{ name: 'table', dims: [VOCABULARY.length, WIDTH], values }],
    operators: [
      { type: 'Gather', inputs: ['table', 'input_ids'], output: 'tokens' },
      { type: 'ReduceMean', inputs: ['tokens'], output: 'mean', attributes: { axes: [1], keepdims: 0 } },
      { type: 'LpNormalization', inputs: ['mean'], output: 'embedding', attributes: { axis: 1, p: 2 } },
    ],
    output: { name: 'embedding', width: WIDTH },
  };
}

/** The small tokenizer, as `tokenizer.json` has it. */
export const TOKENIZER_DEFINITION = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: {
    type: 'BertNormalizer',
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: null,
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
  model: {
    type: 'WordPiece',
    unk_token: '[UNK]',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(VOCABULARY.map((token, id) => [token, id])),
  },
};
