/** Where `umpire models add` is tried: a folder of models, and servers that speak as the real ones do. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { embeddingsDialect } from '../engine/support/http-models/embeddings.ts';
import { type RerankServed, rerankDialect } from '../engine/support/http-models/rerank.ts';
import { type HttpModelServer, startHttpModelServer } from '../engine/support/http-models/server.ts';
import { createEncoder, createPairScorer } from '../engine/support/http-models/text-models.ts';
import { modelsFolder } from '../engine/support/packages.ts';
import { type Ran, runUmpire } from './terminal.ts';

const CANARY = { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'abc' };

/** A folder of models, files that commands read, and the command. */
export async function sceneOf(t: ExecutionContext) {
  const [modelsDir, files] = [await modelsFolder(t), await modelsFolder(t)];
  const write = async (name: string, content: unknown): Promise<string> => {
    await writeFile(join(files, name), typeof content === 'string' ? content : JSON.stringify(content));
    return join(files, name);
  };
  const canaryFile = await write('canary.json', CANARY);
  const add = (server: Pick<HttpModelServer, 'address'> | string, dialect: string, ...more: string[]): Promise<Ran> => {
    const url = typeof server === 'string' ? server : `http://${server.address}`;
    const common = ['--url', url, '--dialect', dialect, '--canary', canaryFile];
    // A machine with much to do takes long for the largest request that 300 choices allow.
    const choices = more.includes('--shortlist') ? [] : ['--choices', '20'];
    const args = ['models', 'add', 'far@r1', ...common, ...choices, ...more];
    return runUmpire(args, { env: { UMPIRE_MODELS_DIR: modelsDir } });
  };
  const manifest = async () => JSON.parse(await readFile(join(modelsDir, 'far', 'r1', 'model.json'), 'utf8'));
  return { modelsDir, write, add, manifest };
}

/** A server of a reranker whose scores are ten times the share of tokens that are `a`. */
export async function rerankServer(t: ExecutionContext, served: Partial<RerankServed>): Promise<HttpModelServer> {
  const scorer = await createPairScorer('a');
  return await startHttpModelServer(
    t,
    rerankDialect({ server: 'tei', scorer, model: 'ranker', maxTokens: 64, ...served }),
  );
}

/** A server of the small encoder. */
export const encoderServer = async (
  t: ExecutionContext,
  served: Partial<Parameters<typeof embeddingsDialect>[0]> = {},
) =>
  await startHttpModelServer(
    t,
    embeddingsDialect({
      encoder: await createEncoder(),
      models: { encoder: '' },
      maxTokens: 64,
      tooLong: 'vllm',
      ...served,
    }),
  );

/** Rows of a package: the most that the server takes, or half of it and so on where the machine has much to do. */
export function rowsWithin(t: ExecutionContext, { batch }: { batch: { rows: number } }, most: number): number {
  t.true(Number.isInteger(Math.log2(most / batch.rows)) && batch.rows <= most, `${batch.rows}`);
  return batch.rows;
}
