/**
 * Makes a package of the family `bi-encoder` from a sentence encoder that was exported from Hugging Face: a folder with
 * `model.onnx` (or `onnx/model.onnx`), `tokenizer.json`, and files that say how it is read: `config.json`,
 * `sentence_bert_config.json`, `1_Pooling/config.json`.
 */
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ModelLimits } from '../engine.ts';
import type { Pooling } from '../families/sentence-encoder.ts';
import type { EngineLogger } from '../options.ts';
import { type Canary, isObject, type JsonObject } from '../packages/manifest.ts';
import type { PackageSpeed } from './check.ts';
import { copyThose, exists, newFolder, type PackagePlace, placePackage, writeManifest } from './place-package.ts';
import { plainTokenizer } from './plain-tokenizer.ts';

/** What is to be packed, and where. What is left out is taken from the export, or from `DEFAULTS`. */
export interface PackRequest extends PackagePlace {
  readonly exported: string;
  readonly ownedBy: string;
  readonly isDefault: boolean;
  readonly pooling?: Pooling | undefined;
  readonly output?: string | undefined;
  readonly limits: { readonly [K in keyof ModelLimits]?: number | undefined };
  readonly temperature?: number | undefined;
  readonly jointWeight?: number | undefined;
  readonly canary?: Canary | undefined;
  readonly logger: EngineLogger;
}

/** The new package's folder, what was found out for its manifest, and how fast it is on this machine. */
export interface Packed {
  readonly folder: string;
  readonly pooling: Pooling;
  readonly output: string;
  readonly limits: ModelLimits;
  /** Control tokens that were taken out of the tokenizer. */
  readonly removed: readonly string[];
  readonly speed: PackageSpeed;
}

/** What holds where neither the caller nor the export says otherwise. */
export const DEFAULTS = {
  candidateTokens: 96,
  choices: 300,
  positions: 512,
  temperature: 0.05,
  jointWeight: 0.2,
} as const;

/** A decision that every encoder of English sentences gets right. */
export const USUAL_CANARY: Canary = {
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
  choice: 'billing',
};

/** The special tokens of the longest sequence. */
const SPECIALS = 3;
const POOLED = ['sentence_embedding', 'embedding'];
const UNPOOLED = ['last_hidden_state', 'token_embeddings'];

/**
 * Writes the package, checks it as the service would load it, and moves it into its place. Rejects with an Error that
 * lists every problem, and leaves nothing behind.
 */
export async function packExport(request: PackRequest): Promise<Packed> {
  const { exported, id, revision, logger } = request;
  await newFolder(request);
  const graph = await graphOf(exported);
  const tokenizer = plainTokenizer(await readFile(join(exported, 'tokenizer.json'), 'utf8'));
  const encoder = await encoderOf(request, graph);
  const limits = await limitsOf(request);
  const options = {
    graph: 'model.onnx',
    tokenizer: 'tokenizer.json',
    pooling: encoder.pooling,
    output: encoder.output,
    normalise: true,
    joint_weight: request.jointWeight ?? DEFAULTS.jointWeight,
    temperature: request.temperature ?? DEFAULTS.temperature,
    special_tokens: { cls: tokenizer.cls, sep: tokenizer.sep },
  };

  const write = async (folder: string): Promise<void> => {
    const names = ['model.onnx', 'tokenizer.json'];
    await copyFile(graph, join(folder, 'model.onnx'));
    for (const name of await dataFiles(graph)) {
      await copyFile(join(dirname(graph), name), join(folder, name));
      names.push(name);
    }
    await writeFile(join(folder, 'tokenizer.json'), tokenizer.text);
    await writeManifest(folder, names, {
      id,
      revision,
      family: 'bi-encoder',
      ownedBy: request.ownedBy,
      isDefault: request.isDefault,
      limits,
      options,
      canary: request.canary ?? USUAL_CANARY,
    });
    await copyThose(exported, folder, [
      ['README.md', 'MODEL_CARD.md'],
      ['LICENSE', 'LICENSE'],
      ['NOTICE', 'NOTICE'],
    ]);
  };
  const placed = await placePackage(request, { write, logger });
  return { ...placed, ...encoder, limits, removed: tokenizer.removed };
}

async function graphOf(exported: string): Promise<string> {
  for (const name of ['model.onnx', join('onnx', 'model.onnx')]) {
    if (await exists(join(exported, name))) return join(exported, name);
  }
  throw new Error(`${exported} has neither model.onnx nor onnx/model.onnx`);
}

/** Files of weights beside a graph that is too large for one file. */
async function dataFiles(graph: string): Promise<readonly string[]> {
  return (await readdir(dirname(graph))).filter((name) => /^model\.onnx[._]data(_\d+)?$/.test(name));
}

async function encoderOf(
  { exported, pooling: asked, output: named }: PackRequest,
  graph: string,
): Promise<{ readonly pooling: Pooling; readonly output: string }> {
  // The runtime is large, so only packing loads it.
  const { loadGraph } = await import('../worker/runtime.ts');
  const loaded = await loadGraph(graph);
  const { outputs } = loaded;
  await loaded.dispose();
  const said = asked ?? (await poolingOf(exported));
  const pooling = said ?? (outputs.some((name) => POOLED.includes(name)) ? 'none' : undefined);
  if (pooling === undefined) throw new Error('the export does not say how vectors are pooled: --pooling mean or cls');
  const usual = pooling === 'none' ? POOLED : UNPOOLED;
  const output = named ?? usual.find((name) => outputs.includes(name));
  if (output === undefined || !outputs.includes(output)) {
    throw new Error(
      `the graph has no output ${named ?? usual.join(' or ')}, but ${outputs.join(', ')}: --output names the one that is meant`,
    );
  }
  return { pooling, output };
}

/** The pooling that sentence-transformers notes in an export; undefined if it notes none that is known here. */
async function poolingOf(exported: string): Promise<Pooling | undefined> {
  const config = await optionalJson(join(exported, '1_Pooling', 'config.json'));
  if (config.pooling_mode_mean_tokens === true) return 'mean';
  if (config.pooling_mode_cls_token === true) return 'cls';
  return undefined;
}

async function limitsOf({ exported, limits }: PackRequest): Promise<ModelLimits> {
  const config = await optionalJson(join(exported, 'config.json'));
  const sentences = await optionalJson(join(exported, 'sentence_bert_config.json'));
  const whole = (value: unknown): number => (Number.isInteger(value) ? (value as number) : Number.POSITIVE_INFINITY);
  // RoBERTa and its relatives count positions from after the padding token's id.
  const first = /roberta|camembert|mpnet/.test(String(config.model_type)) ? 1 + Number(config.pad_token_id ?? 1) : 0;
  const positions = Math.min(whole(config.max_position_embeddings) - first, whole(sentences.max_seq_length));
  const longest = (Number.isFinite(positions) ? positions : DEFAULTS.positions) - SPECIALS;
  return {
    inputTokens: limits.inputTokens ?? longest,
    candidateTokens: limits.candidateTokens ?? Math.min(DEFAULTS.candidateTokens, longest),
    choices: limits.choices ?? DEFAULTS.choices,
  };
}

async function optionalJson(path: string): Promise<Readonly<Record<string, unknown>>> {
  return (await exists(path)) ? JSON.parse(await readFile(path, 'utf8')) : {};
}

/**
 * The fields of both objects, as by JSON Merge Patch (RFC 7396): of a field that both have, the value in `over` holds;
 * two objects are merged in the same way, and null takes a field out.
 */
export function laidOver(under: JsonObject, over: JsonObject): JsonObject {
  const merged = Object.entries(over).map(([field, value]) => {
    const below = Object.hasOwn(under, field) ? under[field] : undefined;
    return [field, isObject(below) && isObject(value) ? laidOver(below, value) : value] as const;
  });
  const fields = Object.entries({ ...under, ...Object.fromEntries(merged) });
  return Object.fromEntries(fields.filter(([, value]) => value !== null));
}
