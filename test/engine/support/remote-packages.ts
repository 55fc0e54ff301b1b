/** Small packages whose scoring is done by a server, and engines with one. */
import type { ExecutionContext } from 'ava';
import type { ScoreJob } from '../../../src/engine/engine.ts';
import { askedAs } from '../../../src/engine/package-tools/presets.ts';
import { type Checker, InvalidOptions, readOptions } from '../../../src/engine/packages/manifest.ts';
import { job, startEngine, type TestEngine, terms } from './engine.ts';
import { embeddingsDialect } from './http-models/embeddings.ts';
import { type RerankServer, rerankDialect } from './http-models/rerank.ts';
import { type HttpModelServer, type ServedDialect, startHttpModelServer } from './http-models/server.ts';
import { createEncoder, createPairScorer } from './http-models/text-models.ts';
import { type InferenceServer, type ServedModel, startInferenceServer } from './inference-server.ts';
import { encoderGraph, entailmentGraph, modelsFolder, type PackageSource, tokenId, writePackage } from './packages.ts';

/** A pair decides as in a package of the family `nli-cross-encoder`. */
const TEMPLATES = { query: '{input}', document: 'it is {choice}' };
const COMMON = { dialect: 'rerank', model: 'small', tokenizer: 'tokenizer.json', temperature: 1, templates: TEMPLATES };

/** Options for one of the servers of rerankers, by its preset. */
export function rerankOptions(server: RerankServer): Readonly<Record<string, unknown>> {
  return { ...COMMON, ...askedAs(server, 'rerank').preset };
}

/** Options that make the server's encoder decide as `tiny` does. */
export const TEXT_EMBEDDING_OPTIONS = {
  dialect: 'embeddings',
  model: 'encoder',
  templates: { choice: '{choice}', input: '{input}', joint: '{instruction}[SEP]{input}' },
  joint_weight: 0.25,
  cuts: 'silently',
  tokenizer: 'tokenizer.json',
  temperature: 0.5,
};

/** What the server of a reranker says; a pair's logit is ten times the share of its tokens that are `z`. */
export async function servedReranker(server: RerankServer, maxTokens = 64): Promise<ServedDialect> {
  return rerankDialect({ server, scorer: await createPairScorer('z'), model: 'small', maxTokens });
}

/** What the server of an encoder says. */
export async function servedEncoder(maxTokens = 64): Promise<ServedDialect> {
  return embeddingsDialect({ encoder: await createEncoder(), models: { encoder: '' }, maxTokens });
}

const cls = tokenId('[CLS]');
const sep = tokenId('[SEP]');

/** Options for a chat server with the usual prompt; `tiny` picks the choices where there are more than it takes. */
export const CHAT_OPTIONS = {
  ...askedAs('litellm', 'chat').options,
  ...{ dialect: 'chat', model: 'small', cuts: 'refuses', tokenizer: 'tokenizer.json', temperature: 1 },
  shortlist: {
    family: 'bi-encoder',
    limits: { input_tokens: 40, candidate_tokens: 12, choices: 300 },
    options: {
      ...{ graph: 'model.onnx', tokenizer: 'tokenizer.json', joint_weight: 0.25, temperature: 0.5 },
      special_tokens: { cls, sep, unk: tokenId('[UNK]') },
    },
  },
};

/** Options that make the server's graph decide as `tiny` does. */
export const EMBEDDING_OPTIONS = {
  model: 'encoder',
  inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' }],
  output: { name: 'embedding', datatype: 'FP32', shape: [-1, 8] },
  returns: 'embedding',
  rows: {
    choice: [cls, '{choice}', sep],
    input: [cls, '{input}', sep],
    joint: [cls, '{instruction}', sep, '{input}', sep],
  },
  joint_weight: 0.25,
  tokenizer: 'tokenizer.json',
  temperature: 0.5,
};

/** Options that make the server's graph decide as a package of the family `nli-cross-encoder` does. */
export const LOGIT_OPTIONS = {
  model: 'entailment',
  inputs: [
    { name: 'input_ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' },
    { name: 'attention_mask', datatype: 'INT64', shape: [-1, -1], holds: 'mask' },
    { name: 'token_type_ids', datatype: 'INT64', shape: [-1, -1], holds: 'types' },
  ],
  output: { name: 'logits', datatype: 'FP32', shape: [-1, 3] },
  returns: 'logit',
  column: 0,
  minus: 2,
  rows: { pair: [cls, '{input}', sep, 'it is {choice}', sep] },
  tokenizer: 'tokenizer.json',
  temperature: 1,
};

/** What a test may change of such a package. */
export interface RemotePackageSource extends Omit<PackageSource, 'options'> {
  readonly options: Readonly<Record<string, unknown>>;
}

/** Writes the package `remote@r1`. */
export async function writeRemotePackage(
  modelsDir: string,
  address: string,
  { options, manifest = {}, ...source }: RemotePackageSource,
): Promise<string> {
  const server = { address, ...(options.server as object | undefined) };
  return await writePackage(modelsDir, {
    id: 'remote',
    ...source,
    manifest: { family: 'remote', options: { ...options, server }, ...manifest },
  });
}

/** The same of the Open Inference Protocol, by the family's former name; the server's graph decides as `tiny` does. */
export async function writeInferencePackage(
  modelsDir: string,
  address: string,
  { options = {}, manifest = {}, ...source }: Partial<RemotePackageSource> = {},
): Promise<string> {
  return await writeRemotePackage(modelsDir, address, {
    ...{
      ...source,
      options: { ...EMBEDDING_OPTIONS, ...options },
      manifest: { family: 'open-inference', ...manifest },
    },
  });
}

/** An engine with the model `remote`, whose server a test has in its hands. */
export interface RemoteScene<S = HttpModelServer> {
  readonly engine: TestEngine;
  readonly server: S;
  readonly modelsDir: string;
  /** The package's folder. */
  readonly folder: string;
  status(): string | undefined;
}

/** Starts an engine with a package that names the server. */
async function startSceneWith<S extends { readonly address: string }>(
  t: ExecutionContext<unknown>,
  server: S,
  source: RemotePackageSource,
  until: 'ready' | 'started' = 'ready',
): Promise<RemoteScene<S>> {
  const modelsDir = await modelsFolder(t);
  const folder = await writeRemotePackage(modelsDir, server.address, source);
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 }, until);
  return { engine, server, modelsDir, folder, status: () => engine.models()[0]?.status };
}

/** Starts server and engine; they end with the test. `before` may change how the server behaves from the first. */
export async function startRemoteScene(
  t: ExecutionContext<unknown>,
  served: ServedDialect,
  source: RemotePackageSource,
  {
    until = 'ready',
    before = () => {},
  }: {
    readonly until?: 'ready' | 'started';
    readonly before?: (server: HttpModelServer) => void;
  } = {},
): Promise<RemoteScene> {
  const server = await startHttpModelServer(t, served);
  before(server);
  return await startSceneWith(t, server, source, until);
}

/** Starts both of the Open Inference Protocol, with these options of the package. */
export async function startInferenceScene(
  t: ExecutionContext<unknown>,
  options: Readonly<Record<string, unknown>> = {},
  {
    until = 'ready',
    served = {},
  }: { readonly until?: 'ready' | 'started'; readonly served?: Partial<ServedModel> } = {},
): Promise<RemoteScene<InferenceServer>> {
  const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding', ...served });
  const manifest = { family: 'open-inference' };
  return await startSceneWith(t, server, { options: { ...EMBEDDING_OPTIONS, ...options }, manifest }, until);
}

/** A package of the family `nli-cross-encoder`, for the canary of which those at servers are right, too. */
export const NLI = {
  graph: entailmentGraph('z'),
  manifest: {
    family: 'nli-cross-encoder',
    canary: { input: 'abc', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' },
    options: {
      ...{ graph: 'model.onnx', tokenizer: 'tokenizer.json', hypothesis: 'it is {choice}', temperature: 1 },
      ...{ entailment: 0, contradiction: 2, special_tokens: { cls, sep } },
    },
  },
};

/** Decides as `here` does, the model `tiny` of an engine, by other models, too: to so much the same numbers. */
export async function sameDecisions(
  t: ExecutionContext<unknown>,
  here: TestEngine,
  requests: readonly Pick<ScoreJob, 'input' | 'instruction' | 'choices'>[],
  {
    by = here,
    models = ['remote'],
    within = 1e-6,
  }: { by?: TestEngine; models?: readonly string[]; within?: number } = {},
): Promise<void> {
  for (const request of requests) {
    const expected = await here.score(job({ ...request, vector: true }), terms());
    for (const model of models) {
      const found = await by.score(job({ ...request, model, vector: true }), terms());
      if (expected.kind !== 'scored' || found.kind !== 'scored') return t.fail(`${expected.kind} ${found.kind}`);
      const apart = found.probabilities.map((p, i) => Math.abs(p - (expected.probabilities[i] ?? Number.NaN)));
      t.true(
        apart.every((each) => each < within),
        `${model} ${request.input}: ${Math.max(...apart)}`,
      );
      const { vector } = found;
      if (vector === undefined) continue;
      t.true(vector.every((value, i) => Math.abs(value - (expected.vector?.[i] ?? Number.NaN)) < within));
    }
  }
}

/** The problems that a dialect's reader has with options, as their JSON is read. */
export function problemsOf(read: (fields: Checker) => unknown, options: unknown): readonly string[] {
  try {
    readOptions(JSON.parse(JSON.stringify(options)), read);
    return [];
  } catch (error) {
    if (error instanceof InvalidOptions) return error.problems;
    throw error;
  }
}

/** What was logged under a message, as JSON. */
export function problemsIn({ log }: TestEngine, message: string): string {
  return JSON.stringify(log.filter((line) => line.message === message).map(({ fields }) => fields));
}
