/**
 * The composition root: builds the service's parts from a configuration. Creating an app opens no port; `start` does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from './config.ts';
import { Authenticator } from './domain/authenticate.ts';
import { BodyLimits } from './domain/body-limits.ts';
import { Catalogs } from './domain/catalogs.ts';
import { Decider } from './domain/decide.ts';
import { Gate, type GateOptions } from './domain/gate.ts';
import { KeyUses } from './domain/key-uses.ts';
import { UnlearnedNotice } from './domain/learned.ts';
import { Limits } from './domain/limits.ts';
import { createEngine } from './engine/create-engine.ts';
import type { Engine } from './engine/engine.ts';
import type { EngineOptions } from './engine/options.ts';
import type { Logger } from './logger.ts';
import { createCatalogService } from './service/catalog-service.ts';
import { createDecisionService } from './service/decision-service.ts';
import { createModelService } from './service/model-service.ts';
import type { Procedure } from './service/procedure.ts';
import { createStores } from './stores/create-stores.ts';
import { describeStore } from './stores/settings.ts';
import { claimFolder, type FolderClaim } from './stores/sqlite/folder.ts';
import type { Stores } from './stores/stores.ts';
import { VERSION } from './version.ts';
import { AccessLog } from './wire/access-log.ts';
import { Dispatch } from './wire/dispatch.ts';
import { Health } from './wire/health.ts';
import { type HoldingState, Holdings } from './wire/holdings/holdings.ts';
import { Cors } from './wire/http/cors.ts';
import { Listener, type TlsFiles } from './wire/listener/listener.ts';
import { Metrics } from './wire/metrics/metrics.ts';
import { RestHandler } from './wire/rest/handler.ts';
import { RpcHandler } from './wire/rpc/handler.ts';
import type { Tracing } from './wire/traces/tracing.ts';
import { processVitals, type Vitals, Watchdog } from './wire/watchdog.ts';

/** Milliseconds between checks whether the models are ready, while the port waits for them. */
const READY_INTERVAL = 50;

/** Parts that the mock, a test or a benchmark supplies. An app does not close what it was given. */
export interface Overrides {
  readonly engine?: Engine;
  readonly stores?: Stores;
  readonly vitals?: Vitals;
  /** Makes another gate than the usual one. */
  readonly gate?: (options: GateOptions) => Gate;
  /** How many log lines were dropped, for the metrics. */
  readonly droppedLogLines?: () => number;
}

/** The parts of an app. */
interface Parts {
  readonly config: Config;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly health: Health;
  readonly holdings: Holdings;
  readonly listener: Listener;
  readonly watchdog: Watchdog;
  readonly metrics: Metrics | undefined;
  readonly tracing: Tracing | undefined;
  /** Counts of faults that nothing caught, by reason. */
  readonly faults: Map<string, number>;
  /** The store's name in the log. */
  readonly storeName: string;
  /** Functions that close what the app made itself, and no override supplied, to be called in this order. */
  readonly own: readonly (() => Promise<void>)[];
}

/** A whole service, from `createApp` to `stop`, which is called once. What an override supplied outlives it. */
export class App {
  readonly #parts: Parts;
  #state: 'created' | 'starting' | 'listening' | 'draining' | 'stopped' = 'created';

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get engine(): Engine {
    return this.#parts.engine;
  }

  get health(): Health {
    return this.#parts.health;
  }

  /** What clients hold of the port. */
  holdings(): HoldingState {
    return this.#parts.holdings.state();
  }

  /** Counts a fault that nothing caught, by its reason, for the metrics. */
  noteFault(reason: string): void {
    const { faults } = this.#parts;
    const label = faults.has(reason) || faults.size < MOST_REASONS ? reason : 'other';
    faults.set(label, (faults.get(label) ?? 0) + 1);
  }

  /**
   * Listens, and resolves with the port; with 0 for a Unix socket, or if the app was stopped first. Models load
   * meanwhile (see `health`)
   * or, where the settings say so, before the port opens.
   * @throws the system's error.
   */
  async start(): Promise<number> {
    const { config, logger, engine, listener, metrics } = this.#parts;
    if (this.#state === 'created') this.#state = 'starting';
    if (metrics !== undefined && config.metricsPort !== undefined) {
      const { port } = await metrics.listen({ port: config.metricsPort, host: config.host });
      logger.info({ metricsPort: port }, 'metrics');
    }
    if (config.listenWhen === 'ready') {
      logger.info({}, 'waiting for the models before the port opens');
      while (this.#state === 'starting' && !engine.ready()) await sleep(READY_INTERVAL);
    }
    if (this.#state !== 'starting') return 0;
    const { port, host } = await listener.listen({ port: config.port, host: config.host });
    if (this.#state === 'starting') this.#state = 'listening';
    const { engines, tls } = config;
    const { pid } = process;
    const fields = { version: VERSION, pid, host, port, tls: tls !== undefined, engines, store: this.#parts.storeName };
    logger.info(fields, 'listening');
    return typeof port === 'number' ? port : 0;
  }

  /**
   * Reads the model packages again and, if the port speaks TLS, uses the new certificate. @throws Error if the
   * certificate is not valid.
   */
  reload(tls: TlsFiles | undefined): void {
    const { engine, listener, logger } = this.#parts;
    engine.reload();
    if (tls !== undefined) listener.setCertificate(tls);
    logger.info({}, 'reloaded');
  }

  /**
   * Drains and stops. The app is unready at once, takes no new connections after the drain delay, and has stopped when
   * the last request is answered or the grace period is over.
   */
  async stop(): Promise<void> {
    const { config, logger, health, listener, watchdog, metrics, tracing, own } = this.#parts;
    this.#state = 'draining';
    logger.info({ delayMs: config.drainDelay }, 'draining');
    health.startDraining();
    listener.startLeaving();
    await sleep(config.drainDelay);
    const graceEnds = performance.now() + config.drainGrace;
    await listener.close(config.drainGrace);
    await tracing?.close(Math.min(MOST_FLUSH, Math.max(LEAST_FLUSH, graceEnds - performance.now())));
    for (const close of own) await close();
    health.close();
    watchdog.close();
    await metrics?.close();
    this.#state = 'stopped';
    logger.info({}, 'stopped');
  }
}

/** How many reasons are counted separately: a metric must not have unboundedly many label values. */
const MOST_REASONS = 16;

/** Milliseconds for sending the last traces, at least and at most; between them, what requests left of the grace. */
const LEAST_FLUSH = 1000;
const MOST_FLUSH = 5000;

/**
 * An app that does not listen yet.
 * @throws StoreUnavailable or StoreCorrupt if the embedded store cannot be opened, Error if an annotation
 * cannot be served.
 */
export async function createApp(config: Config, logger: Logger, overrides: Overrides = {}): Promise<App> {
  const stores = overrides.stores ?? (await createStores(config.store, logger));
  const claim = overrides.stores === undefined ? claimOf(config, logger) : undefined;
  const keys = new KeyUses(stores.keys);
  const engine = overrides.engine ?? (await createEngine(engineOptionsOf(config, logger)));
  const health = new Health(engine);
  const holdings = new Holdings({ settings: config.holdings, trustedProxies: config.trustedProxies, logger });
  // One series starts at zero: in a series that starts with its first fault, Prometheus sees no increase.
  const faults = new Map<string, number>([['other', 0]]);
  const procedures = createProcedures({ config, logger, engine, stores });
  const vitals = overrides.vitals ?? processVitals();
  const watchdog = new Watchdog({ memoryLimit: config.memory, vitals, logger });
  const gating: GateOptions = {
    authenticator: new Authenticator({ keys, limitBadKeys: config.limits.anonymous.rate !== 'off' }),
    limits: new Limits({ settings: config.limits, store: stores.limits, log: logger }),
    answers: new BodyLimits(config.bodies, 'answers'),
    trustedProxies: config.trustedProxies,
    anonymous: config.anonymous,
    engine,
    watchdog,
  };
  const gate = overrides.gate?.(gating) ?? new Gate(gating);
  const bodies = new BodyLimits(config.bodies, 'requests');
  const rest = new RestHandler({ procedures, gate, health, bodies, models: () => engine.models() });
  const rpc = new RpcHandler({ procedures, gate, health, bodies, holdings, reflection: config.reflection });
  const { droppedLogLines = () => 0 } = overrides;
  const metrics =
    config.metricsPort === undefined
      ? undefined
      : new Metrics({
          engine,
          store: () => stores.health(),
          ready: () => health.ready,
          holdings: () => holdings.state(),
          health,
          faults,
          memoryLimit: config.memory,
          droppedLogLines,
        });
  const tracing = await createTracingOf(config, logger);
  // The log is last: its line names the span that tracing made.
  const observers = [metrics, tracing, new AccessLog(logger)].flatMap((part) => part?.observe ?? []);
  const cors = config.corsOrigins.length === 0 ? undefined : new Cors(config.corsOrigins);
  const dispatch = new Dispatch({ rest, rpc, holdings, observers, cors });
  const listener = new Listener({ dispatch, logger, holdings, tls: config.tls });
  watchdog.start(() => listener.closeIdle());
  const own = [
    ...(overrides.engine === undefined ? [() => engine.close()] : []),
    () => keys.close(),
    ...(overrides.stores === undefined ? [() => stores.close()] : []),
    async () => claim?.release(),
  ];
  const storeName = overrides.stores === undefined ? describeStore(config.store) : config.store.kind;
  const parts = { config, logger, engine, health, holdings, listener, watchdog, metrics, tracing, faults };
  return new App({ ...parts, storeName, own });
}

/** Claims the data folder, if there is one. Logs a warning if another server uses it. */
function claimOf({ store }: Config, logger: Logger): FolderClaim | undefined {
  if (store.kind !== 'sqlite') return undefined;
  const claim = claimFolder(store.folder);
  if (!claim.alone) {
    logger.warn({ store: describeStore(store) }, 'another server uses this data folder: each counts limits alone');
  }
  return claim;
}

function engineOptionsOf(config: Config, logger: Logger): EngineOptions {
  const { modelsDir, cacheDir, models, engines, inferenceServers, engineMemory: engineMemoryBytes } = config;
  return { modelsDir, cacheDir, models, engines, inferenceServers, engineMemoryBytes, logger };
}

/** The procedures of all services, which every protocol serves. */
function createProcedures(parts: {
  readonly config: Config;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly stores: Stores;
}): readonly Procedure[] {
  const { config, logger, engine, stores } = parts;
  const catalogs = new Catalogs({ store: stores.catalogs, engine, bounds: config.catalogBounds });
  const decider = new Decider({ engine, catalogs, unlearned: new UnlearnedNotice(logger) });
  return [
    ...createDecisionService({ decider }),
    ...createModelService({ engine }),
    ...createCatalogService({ catalogs }),
  ];
}

/** Tracing, if it is set up: only then are its packages loaded. */
async function createTracingOf({ traces, tls }: Config, logger: Logger): Promise<Tracing | undefined> {
  if (traces === undefined) return undefined;
  const { Tracing } = await import('./wire/traces/tracing.ts');
  return new Tracing(traces, tls !== undefined, logger);
}
