/** A whole service for tests: the real engine, the embedded store in a folder of its own, a free port. */
import type { ExecutionContext } from 'ava';
import { type App, createApp, type Overrides } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/logger.ts';
import { NO_LIMITS } from '../../src/mock/start-mock.ts';
import { CALM_VITALS } from '../../src/wire/watchdog.ts';
import { lightModel } from './light-model.ts';
import { ENGINE_CACHE } from './models-dir.ts';
import { createScriptedEngine, type ScriptedEngine } from './scripted-engine.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A service that is ready. */
export interface TestService {
  readonly app: App;
  readonly port: number;
  /** `http://127.0.0.1:<port>`, or https where the settings have a certificate. */
  readonly url: string;
  /** The log's lines so far, parsed. */
  readonly log: readonly Record<string, unknown>[];
  stop(): Promise<void>;
}

/**
 * Starts one with `env` over the settings that tests share: one engine, one light model, no limits, no waiting.
 * Resolves once it is ready.
 */
export async function startService(env: Record<string, string> = {}, overrides: Overrides = {}): Promise<TestService> {
  const config = readConfig({
    PORT: '0',
    HOST: '127.0.0.1',
    UMPIRE_DATA_DIR: temporaryFolder(),
    UMPIRE_ENGINES: '1',
    UMPIRE_MODELS_DIR: lightModel(),
    ...NO_LIMITS,
    UMPIRE_DRAIN_DELAY: '0',
    ...env,
  });
  const log: Record<string, unknown>[] = [];
  const logger = createLogger(config.logLevel, { write: (line) => log.push(JSON.parse(line)) });
  const shared = { ...config, cacheDir: ENGINE_CACHE };
  const app = await withEnvironment(env, () => createApp(shared, logger, { vitals: CALM_VITALS, ...overrides }));
  const port = await app.start();
  await untilReady(app, log);
  return {
    app,
    port,
    url: `${config.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    log,
    stop: () => app.stop(),
  };
}

let starting: Promise<unknown> = Promise.resolve();

/** OpenTelemetry reads its variables from the process itself: they are set for one service at a time. */
function withEnvironment<T>(env: Record<string, string>, start: () => Promise<T>): Promise<T> {
  const variables = Object.entries(env).filter(([name]) => name.startsWith('OTEL_'));
  if (variables.length === 0) return start();
  const started = starting.then(async () => {
    Object.assign(process.env, Object.fromEntries(variables));
    try {
      return await start();
    } finally {
      for (const [name] of variables) delete process.env[name];
    }
  });
  starting = started.catch(() => {});
  return started;
}

/** Milliseconds that models may take to load on a busy machine. */
const READY_TIMEOUT = 90_000;

async function untilReady({ health }: App, log: readonly object[]): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT;
  while (!health.ready) {
    if (performance.now() > deadline)
      throw new Error(`the service did not become ready: ${JSON.stringify(log.slice(-8))}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts one whose engine answers by a script, and ends it with the test. */
export async function scriptedService(
  t: ExecutionContext,
  env: Record<string, string> = {},
  engine: ScriptedEngine = createScriptedEngine(),
): Promise<TestService> {
  const service = await startService(env, { engine });
  t.teardown(service.stop);
  return service;
}
