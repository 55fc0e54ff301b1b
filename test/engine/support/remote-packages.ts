/** Small packages of the family `remote` whose server speaks HTTP, and engines with one. */
import type { ExecutionContext } from 'ava';
import { askedAs } from '../../../src/engine/package-tools/presets.ts';
import { startEngine, type TestEngine } from './engine.ts';
import { embeddingsDialect } from './http-models/embeddings.ts';
import { type RerankServer, rerankDialect } from './http-models/rerank.ts';
import { type HttpModelServer, type ServedDialect, startHttpModelServer } from './http-models/server.ts';
import { createEncoder, createPairScorer } from './http-models/text-models.ts';
import { modelsFolder, type PackageSource, writePackage } from './packages.ts';

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

/** An engine with the model `remote`, whose server a test has in its hands. */
export interface RemoteScene {
  readonly engine: TestEngine;
  readonly server: HttpModelServer;
  /** The package's folder. */
  readonly folder: string;
  status(): string | undefined;
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
  const modelsDir = await modelsFolder(t);
  const folder = await writeRemotePackage(modelsDir, server.address, source);
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 }, until);
  return { engine, server, folder, status: () => engine.models()[0]?.status };
}
