/**
 * A mock of the service: the real listener, protocols, rules and stores, so that the contract is exact by construction,
 * with another engine and with faults on request. Its store is a temporary folder.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp } from '../app.ts';
import { readConfig } from '../config.ts';
import { hashKey, mintKeyId } from '../domain/keys.ts';
import type { ModelLimits } from '../engine/engine.ts';
import type { Logger } from '../logger.ts';
import { createStoreBudget } from '../stores/budget.ts';
import { createStores } from '../stores/create-stores.ts';
import { CALM_VITALS } from '../wire/watchdog.ts';
import { type ChanceFault, FaultyGate } from './faults.ts';
import { createMockEngine, type MockModel } from './mock-engine.ts';

/** What a mock serves, and which faults it has. */
export interface MockOptions {
  /**
   * Settings of the service. Those that say where something is stored are not used, and limits are off unless
   * they are set here.
   */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly models: readonly MockModel[];
  readonly limits: ModelLimits;
  /** Live keys by their owners. */
  readonly keys: Readonly<Record<string, string>>;
  readonly faults: readonly ChanceFault[];
  readonly seed: number;
  readonly logger: Logger;
}

/** A mock that listens. */
export interface Mock {
  readonly url: string;
  stop(): Promise<void>;
}

/** Settings of stores that a mock must not touch: it keeps everything in a folder of its own. */
const OTHER_STORES = [
  'REDIS_URL',
  'REDIS_SENTINELS',
  'REDIS_SENTINEL_NAME',
  'REDIS_CLUSTER',
  'UMPIRE_REDIS_WAIT_REPLICAS',
];

/** Starts a mock. @throws ConfigError, or the system's error if the port is not available. */
export async function startMock(options: MockOptions): Promise<Mock> {
  const { env, models, limits, keys, faults, seed, logger } = options;
  const folder = await mkdtemp(join(tmpdir(), 'umpire-mock-'));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const config = readConfig({
      HOST: '127.0.0.1',
      ...NO_LIMITS,
      UMPIRE_DRAIN_DELAY: '0',
      ...env,
      ...Object.fromEntries(OTHER_STORES.map((name) => [name, undefined])),
      UMPIRE_MODELS_DIR: undefined,
      UMPIRE_DATA_DIR: folder,
    });
    const stores = await createStores(config.store, logger);
    try {
      for (const [owner, key] of Object.entries(keys)) {
        const createdAt = new Date().toISOString();
        const record = { keyId: mintKeyId(), hash: hashKey(key), owner, limits: {}, createdAt };
        await stores.keys.add(record, createStoreBudget(10_000));
      }
      const engine = createMockEngine(models, limits);
      const app = await createApp(config, logger, {
        engine,
        stores,
        // Its answers are predictable: no fault but those that were asked for.
        vitals: CALM_VITALS,
        gate: (gating) => new FaultyGate(gating, faults, seed),
      });
      const port = await app.start();
      const host = ['0.0.0.0', '::'].includes(config.host)
        ? '127.0.0.1'
        : config.host.includes(':')
          ? `[${config.host}]`
          : config.host;
      return {
        url: `${config.tls === undefined ? 'http' : 'https'}://${host}:${port}`,
        async stop() {
          await app.stop();
          await engine.close();
          await stores.close();
          await removeFolder();
        },
      };
    } catch (error) {
      await stores.close();
      throw error;
    }
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** Settings under which nobody is limited, for a mock and for the servers that tests start. */
export const NO_LIMITS = {
  UMPIRE_RATE_ANONYMOUS: 'off',
  UMPIRE_RATE_KEY: 'off',
  UMPIRE_CONCURRENCY_ANONYMOUS: 'off',
  UMPIRE_CONCURRENCY_KEY: 'off',
  UMPIRE_BODIES_ANONYMOUS: 'off',
  UMPIRE_BODIES_KEY: 'off',
  UMPIRE_BODIES_ALL: 'off',
  UMPIRE_REQUEST_RATE: 'off',
} as const;
