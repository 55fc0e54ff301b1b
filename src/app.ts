/**
 * The composition root: puts the parts together by a configuration. Creating an app listens to nothing; `start` does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from './config.ts';
import { createAuthenticator } from './domain/authenticate.ts';
import { createBodyLimits } from './domain/body-limits.ts';
import { createCatalogs } from './domain/catalogs.ts';
import { createDecider } from './domain/decide.ts';
import { watchKeyUses } from './domain/key-uses.ts';
import { createLimits } from './domain/limits.ts';
import { createUnlearnedNotice } from './domain/unlearned-notice.ts';
import { createEngine } from './engine/create-engine.ts';
import type { Engine } from './engine/engine.ts';
import type { Logger } from './logger.ts';
import { createCatalogService } from './service/catalog-service.ts';
import { createDecisionService } from './service/decision-service.ts';
import { createModelService } from './service/model-service.ts';
import { createStores } from './stores/create-stores.ts';
import { describeStore } from './stores/settings.ts';
import { claimFolder } from './stores/sqlite/folder.ts';
import type { Stores } from './stores/stores.ts';
import { VERSION } from './version.ts';
import { createGate, type Gate } from './wire/call/gate.ts';
import { createCollector } from './wire/collector.ts';
import { createDispatch } from './wire/dispatch.ts';
import { createHealth, type Health } from './wire/health.ts';
import { createHoldings, type HoldingState } from './wire/holdings/holdings.ts';
import { createListener, type Listener, type TlsFiles } from './wire/listener/listener.ts';
import { createMetrics } from './wire/metrics/metrics.ts';
import { createRestHandler } from './wire/rest/handler.ts';
import { createRpcHandler } from './wire/rpc/handler.ts';
import { createWatchdog, IDLE_AT, processVitals, type Vitals } from './wire/watchdog.ts';

/** Milliseconds between looks at the models while the port waits for them. */
const READY_INTERVAL = 50;

/** Parts that the mock, a test or a benchmark brings itself. An app does not close what it was given. */
export interface Overrides {
  readonly engine?: Engine;
  readonly stores?: Stores;
  readonly vitals?: Vitals;
  /** What stands in the gate's place, usually with the gate behind it. */
  readonly gate?: (gate: Gate) => Gate;
  /** Log lines that were dropped, for the metrics. */
  readonly droppedLogLines?: () => number;
}

/** A whole service. It lives from `createApp` to `stop`, which is called once; what an override brought outlives it. */
export interface App {
  readonly engine: Engine;
  readonly health: Health;
  /** What clients hold of the port. */
  holdings(): HoldingState;
  /** Counts a fault that nothing caught, by its reason, for the metrics. */
  noteFault(reason: string): void;
  /**
   * Listens, and resolves with the port; 0 if it was stopped before. Models load meanwhile (see `health`) or, where the
   * settings say so, before.
   * @throws the system's error.
   */
  start(): Promise<number>;
  /**
   * Looks at the model packages again and uses the certificate, if the port speaks TLS. @throws Error if the
   * certificate is not valid.
   */
  reload(tls: TlsFiles | undefined): void;
  /**
   * Drains and stops: unready at once, closed to new connections after the drain delay, done when the last request is
   * answered.
   */
  stop(): Promise<void>;
}

/** Reasons of faults that are counted by themselves: label values must be bounded. */
const MOST_REASONS = 16;

/** Milliseconds in which the last traces are sent: what requests left of the grace, and no less or more than this. */
const LEAST_FLUSH = 1000;
const MOST_FLUSH = 5000;

/**
 * @throws StoreUnavailable or StoreCorrupt if the embedded store cannot be opened, Error if an annotation cannot be
 * served.
 */
export async function createApp(config: Config, logger: Logger, overrides: Overrides = {}): Promise<App> {
  const stores = overrides.stores ?? (await createStores(config.store, logger));
  const claim =
    overrides.stores === undefined && config.store.kind === 'sqlite' ? claimFolder(config.store.folder) : undefined;
  if (claim?.alone === false) {
    logger.warn(
      { store: describeStore(config.store) },
      'another server uses this data folder: each counts limits alone',
    );
  }
  const watched = watchKeyUses(stores.keys);
  const engine =
    overrides.engine ??
    (await createEngine({
      modelsDir: config.modelsDir,
      models: config.models,
      engines: config.engines,
      inferenceServers: config.inferenceServers,
      engineMemoryBytes: config.engineMemory,
      logger,
    }));
  const health = createHealth(() => engine.ready());
  const catalogs = createCatalogs({ store: stores.catalogs, engine, bounds: config.catalogBounds });
  // One reason from zero, or the first fault would be no increase.
  const faults = new Map<string, number>([['other', 0]]);
  const procedures = [
    ...createDecisionService({
      decider: createDecider({ engine, catalogs, unlearned: createUnlearnedNotice(logger) }),
    }),
    ...createModelService({ engine }),
    ...createCatalogService({ catalogs }),
  ];
  const ownGate = createGate({
    authenticator: createAuthenticator({ keys: watched.keys, limitBadKeys: config.limits.anonymous.rate !== 'off' }),
    limits: createLimits({ settings: config.limits, store: stores.limits, log: logger }),
    trustedProxies: config.trustedProxies,
    engine,
    refused: () => watchdog.refused,
  });
  const gate = overrides.gate?.(ownGate) ?? ownGate;
  const bodies = createBodyLimits(config.bodies);
  const holdings = createHoldings({ settings: config.holdings, trustedProxies: config.trustedProxies, logger });
  const rest = createRestHandler({ procedures, gate, health, bodies });
  const rpc = createRpcHandler({ procedures, gate, health, bodies, holdings, reflection: config.reflection });
  const metrics =
    config.metricsPort === undefined
      ? undefined
      : createMetrics({
          engine,
          store: () => stores.health(),
          ready: () => health.ready,
          holdings: () => holdings.state(),
          health,
          faults,
          memoryLimit: config.memory,
          droppedLogLines: overrides.droppedLogLines ?? (() => 0),
        });
  const tracing =
    config.traces === undefined
      ? undefined
      : (await import('./wire/traces/tracing.ts')).createTracing({
          settings: config.traces,
          tls: config.tls !== undefined,
          logger,
        });
  const observers = [metrics, tracing].flatMap((part) => part?.observe ?? []);
  const dispatch = createDispatch({ rest, rpc, holdings, logger, observers });
  const listener: Listener = createListener({
    dispatch,
    logger,
    holdings,
    tls: config.tls,
  });

  const vitals = overrides.vitals ?? processVitals();
  const collect = createCollector(() => vitals.memory() >= IDLE_AT * config.memory);
  const watchdog = createWatchdog({
    memoryLimit: config.memory,
    vitals,
    closeIdle: () => {
      listener.closeIdle();
      collect();
    },
    changed: (refused, vitals) => {
      const fields = { ...vitals, refused };
      if (refused !== 'nobody') logger.warn(fields, 'near the bounds of memory or of the event loop: work is refused');
      else logger.info(vitals, 'within the bounds again: work is taken');
    },
  });

  return {
    engine,
    health,
    holdings: () => holdings.state(),
    noteFault(reason) {
      const label = faults.has(reason) || faults.size < MOST_REASONS ? reason : 'other';
      faults.set(label, (faults.get(label) ?? 0) + 1);
    },
    async start() {
      if (metrics !== undefined && config.metricsPort !== undefined) {
        logger.info({ metricsPort: await metrics.listen(config.metricsPort, config.host) }, 'metrics');
      }
      if (config.listenWhen === 'ready') {
        logger.info({}, 'waiting for the models before the port opens');
        while (!health.draining && !engine.ready()) await sleep(READY_INTERVAL);
      }
      if (health.draining) return 0;
      const port = await listener.listen(config.port, config.host);
      logger.info(
        {
          version: VERSION,
          host: config.host,
          port,
          tls: config.tls !== undefined,
          engines: config.engines,
          store: overrides.stores === undefined ? describeStore(config.store) : config.store.kind,
        },
        'listening',
      );
      return port;
    },
    reload(tls) {
      engine.reload();
      if (tls !== undefined) listener.setCertificate(tls);
      logger.info({}, 'reloaded');
    },
    async stop() {
      logger.info({ delayMs: config.drainDelay }, 'draining');
      health.startDraining();
      listener.startLeaving();
      await sleep(config.drainDelay);
      const graceEnds = performance.now() + config.drainGrace;
      await listener.close(config.drainGrace);
      await tracing?.close(Math.min(MOST_FLUSH, Math.max(LEAST_FLUSH, graceEnds - performance.now())));
      if (overrides.engine === undefined) await engine.close();
      await watched.close();
      if (overrides.stores === undefined) await stores.close();
      claim?.release();
      health.close();
      watchdog.close();
      await metrics?.close();
      logger.info({}, 'stopped');
    },
  };
}
