/** Where `umpire models add` is tried: a folder of models, and servers that speak as the real ones do. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type ChatServed, chatDialect } from '../engine/support/http-models/chat.ts';
import { embeddingsDialect } from '../engine/support/http-models/embeddings.ts';
import { type RerankServed, rerankDialect } from '../engine/support/http-models/rerank.ts';
import { type HttpModelServer, startHttpModelServer } from '../engine/support/http-models/server.ts';
import { type SystemOneServed, systemOneDialect } from '../engine/support/http-models/system-one.ts';
import { createEncoder, createPairScorer } from '../engine/support/http-models/text-models.ts';
import { modelsFolder, publishedTokenizer } from '../engine/support/packages.ts';
import { type Ran, runUmpire } from './terminal.ts';

const CANARY = { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'abc' };
/** What every server of the tests reads whole. */
const LIMITS = ['--input-tokens', '36', '--candidate-tokens', '12'];

/** A folder of models, files that commands read, and the command with usual arguments and others. */
export async function sceneOf(t: ExecutionContext) {
  const [modelsDir, files] = [await modelsFolder(t), await modelsFolder(t)];
  const write = async (name: string, content: unknown): Promise<string> => {
    await writeFile(join(files, name), typeof content === 'string' ? content : JSON.stringify(content));
    return join(files, name);
  };
  const canaryFile = await write('canary.json', CANARY);
  const tokenizer = await write('tokenizer.json', publishedTokenizer());
  const add = (server: Pick<HttpModelServer, 'address'> | string, ...more: string[]): Promise<Ran> => {
    const url = typeof server === 'string' ? server : `http://${server.address}`;
    // A machine with much to do takes long for the largest request that 300 choices allow.
    const choices = more.includes('--shortlist') ? [] : ['--choices', '20'];
    const limits = more.includes('--input-tokens') ? [] : LIMITS;
    const args = ['models', 'add', 'far@r1', '--url', url, '--canary', canaryFile, ...choices, ...limits, ...more];
    return runUmpire(args, { env: { UMPIRE_MODELS_DIR: modelsDir } });
  };
  const manifest = async () => JSON.parse(await readFile(join(modelsDir, 'far', 'r1', 'model.json'), 'utf8'));
  return { modelsDir, write, add, manifest, tokenizer };
}

/** A server of a reranker whose scores are ten times the share of tokens that are `a`. */
export async function rerankServer(
  t: ExecutionContext,
  served: Partial<RerankServed>,
  over: Parameters<typeof startHttpModelServer>[2] = {},
): Promise<HttpModelServer> {
  const usual = { server: 'tei', scorer: await createPairScorer('a'), model: 'ranker', maxTokens: 64 } as const;
  return await startHttpModelServer(t, rerankDialect({ ...usual, ...served }), over);
}

/** A server of the small encoder. */
export const encoderServer = async (
  t: ExecutionContext,
  served: Partial<Parameters<typeof embeddingsDialect>[0]> = {},
) => {
  const usual = { encoder: await createEncoder(), models: { encoder: '', undefined: '' }, maxTokens: 64 };
  return await startHttpModelServer(t, embeddingsDialect({ ...usual, tooLong: 'vllm', ...served }));
};

/** What the models of decision and chat servers make of their encoder. */
export const DECIDER = { jointWeight: 0.25, temperature: 0.05 } as const;

/** A decision server. */
export const decisionServer = async (t: ExecutionContext, served: Partial<SystemOneServed> = {}) => {
  const usual = { encoder: await createEncoder(), model: 'nimble', options: 26, maxTokens: 1200, decimals: 4 };
  const dialect = { variant: 'systemone', ...DECIDER } as const;
  return await startHttpModelServer(t, systemOneDialect({ ...usual, ...dialect, ...served }));
};

/** A chat server with the model of the decision server. */
export const chatServer = async (t: ExecutionContext, served: Partial<ChatServed> = {}) => {
  const usual = {
    encoder: await createEncoder(),
    model: 'nimble',
    maxTokens: 2000,
    jointWeight: 0.25,
    temperature: 0.05,
  };
  return await startHttpModelServer(t, chatDialect({ ...usual, ...served }));
};
