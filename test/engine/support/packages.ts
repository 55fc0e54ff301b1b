/** Small model packages that tests write: their tokens are letters and digits, their graphs run in microseconds, or slowly on demand. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type GraphSource, type Operator, onnxModel } from './onnx.ts';

const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789'];
const vocabulary = [
  '[UNK]',
  '[CLS]',
  '[SEP]',
  ...letters,
  ...letters.map((letter) => `##${letter}`),
  '$',
  '&',
  '{',
  '}',
  '[',
  ']',
];
const width = 8;

/** The id of a token of the small vocabulary. */
export function tokenId(token: string): number {
  return vocabulary.indexOf(token);
}

/** An empty models folder that goes away with the test. */
export async function modelsFolder(t: ExecutionContext<unknown>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'models-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** What a test may change of a package. */
export interface PackageSource {
  readonly id?: string;
  readonly revision?: string;
  readonly graph?: Uint8Array;
  readonly manifest?: Readonly<Record<string, unknown>>;
  /** Further files that the manifest lists. */
  readonly files?: Readonly<Record<string, Uint8Array>>;
  /** Merged into the family's options. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Writes a package and returns its folder. Without changes it is a sound bi-encoder `tiny@r1`. */
export async function writePackage(modelsDir: string, source: PackageSource = {}): Promise<string> {
  const { id = 'tiny', revision = 'r1', graph = encoderGraph(), files = {} } = source;
  const folder = join(modelsDir, id, revision);
  await mkdir(folder, { recursive: true });
  const tokenizer = Buffer.from(JSON.stringify(tokenizerDefinition));
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
 * The same encoder, but every run first multiplies a 512 × 512 matrix `products` times with itself: some 5 to 20 ms each.
 * The embeddings are the same.
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

/** A cross-encoder whose entailment is the share of tokens that are `letter`, times 10; with all three usual inputs. */
export function entailmentGraph(letter: string): Uint8Array {
  const values = new Float32Array(vocabulary.length * 3);
  for (const token of [letter, `##${letter}`]) values[tokenId(token) * 3] = 10;
  return onnxModel({
    inputs: ['attention_mask', 'token_type_ids'],
    constants: [{ name: 'table', dims: [vocabulary.length, 3], values }],
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
  const values = Float32Array.from({ length: vocabulary.length * width }, (_, i) => Math.sin((i + 1) * 12.9898 * seed));
  return {
    constants: [{ name: 'table', dims: [vocabulary.length, width], values }],
    operators: [
      { type: 'Gather', inputs: ['table', 'input_ids'], output: 'tokens' },
      { type: 'ReduceMean', inputs: ['tokens'], output: 'mean', attributes: { axes: [1], keepdims: 0 } },
      { type: 'LpNormalization', inputs: ['mean'], output: 'embedding', attributes: { axis: 1, p: 2 } },
    ],
    output: { name: 'embedding', width },
  };
}

/** The small tokenizer, as `tokenizer.json` has it. */
export const tokenizerDefinition = {
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
    vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
  },
};
