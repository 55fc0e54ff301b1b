/**
 * Makes the same decisions with a catalog of a running service, over HTTP: callers must get exactly the numbers that
 * are measured.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { hashKey, mintKey, mintKeyId } from '../../src/domain/keys.ts';
import { Learned } from '../../src/domain/learned.ts';
import { roundDistribution } from '../../src/domain/probabilities.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { ScoredExample } from '../../src/learning/regression.ts';
import { createLogger } from '../../src/logger.ts';
import { createStoreBudget } from '../../src/stores/budget.ts';
import type { LearnedRecord } from '../../src/stores/catalog-additions.ts';
import { UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { createStores } from '../../src/stores/create-stores.ts';
import { SILENT_LOG } from '../../src/stores/stores.ts';
import type { Row } from '../eval/data-sets.ts';

/** A row of a set with its scores. */
export interface CheckedRow {
  readonly row: Row;
  readonly scored: ScoredExample;
}

/**
 * Throws Error at the first decision of the service whose answer, confidence or digest is not that of `record`. The
 * engine stays open.
 */
export async function checkThroughService(
  engine: Engine,
  model: string,
  choices: readonly string[],
  record: LearnedRecord,
  rows: readonly CheckedRow[],
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-bench-'));
  const stores = await createStores({ kind: 'sqlite', folder }, SILENT_LOG);
  const off = Object.fromEntries(['REQUEST_RATE', 'RATE_KEY'].map((name) => [`UMPIRE_${name}`, 'off']));
  const config = readConfig({ PORT: '0', HOST: '127.0.0.1', UMPIRE_DATA_DIR: folder, UMPIRE_DRAIN_DELAY: '0', ...off });
  const shared: Engine = { ...engine, close: async () => {} };
  const app = await createApp(config, createLogger('silent', { write() {} }), { engine: shared });
  try {
    const budget = () => createStoreBudget(10_000);
    const createdAt = new Date().toISOString();
    const key = mintKey();
    await stores.keys.add({ keyId: mintKeyId(), hash: hashKey(key), owner: 'bench', limits: {}, createdAt }, budget());
    const catalog = {
      id: 'set',
      model,
      choices,
      version: '1',
      visibility: 'private',
      createdAt,
      additions: { learned: record },
    };
    await stores.catalogs.create('bench', catalog, UNBOUNDED, budget());
    const url = `http://127.0.0.1:${await app.start()}/v1/decisions`;
    const state = new Learned(record);
    for (const { row, scored } of rows) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, input: row.input, instruction: row.instruction, catalog: 'set' }),
      });
      const { output, error } = (await response.json()) as {
        output?: { choice: string; confidence: number };
        error?: object;
      };
      const { winner, probabilities } = roundDistribution(state.decide(scored.probabilities, scored.vector));
      const isSame =
        output?.choice === choices[winner] &&
        output?.confidence === probabilities[winner] &&
        response.headers.get('x-umpire-learned') === record.digest;
      if (!isSame) throw new Error(`the service decides otherwise: ${JSON.stringify(output ?? error)}`);
    }
  } finally {
    await app.stop();
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
