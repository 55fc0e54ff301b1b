/**
 * What an operator sees of the service, in the Prometheus text format. Label values are bounded: routes, protocols,
 * statuses, reasons, models and stages, never an owner, a key, a catalog, an input or a request.
 */
import { collectDefaultMetrics, type Registry } from 'prom-client';
import { ERROR_TABLE } from '../../domain/errors.ts';
import type { Engine } from '../../engine/engine.ts';
import type { StoreHealth } from '../../stores/stores.ts';
import { VERSION } from '../../version.ts';
import { readingsIn } from './readings.ts';
import { addCounts, addDistributions, type Count, type Distribution, type Labelled } from './tallies.ts';

/** Upper bounds in seconds, from a cached answer to the longest deadline that a caller may state. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const SHARES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

/** The metrics that requests are counted in, by their label values. */
export interface RequestMetrics {
  /** Requests, labelled by route, protocol and status. */
  readonly requests: Labelled<Count>;
  /** How long they took, labelled by route and protocol. */
  readonly seconds: Labelled<Distribution>;
  readonly stages: Labelled<Distribution>;
  /** Requests that failed, labelled by the reason. */
  readonly errors: Labelled<Count>;
  /** Tokens of decisions, labelled by the model, as the metrics below are. */
  readonly tokens: Labelled<Count>;
  readonly unread: Labelled<Count>;
  readonly learned: Labelled<Count>;
  readonly choices: Labelled<Count>;
  readonly confidence: Labelled<Distribution>;
}

/** Creates the metrics of requests in a registry. */
export function createRequestMetrics(registry: Registry): RequestMetrics {
  const errors = addCounts(registry, {
    name: 'umpire_errors_total',
    help: 'Requests that failed, by reason: error.code of the contract. Limits that were hit are among them, probes of /health are not.',
    labelNames: ['reason'],
  });
  // Each series starts at zero: in one that starts with its first failure, Prometheus sees no increase.
  for (const reason of Object.keys(ERROR_TABLE)) errors(reason.toLowerCase());
  return {
    errors,
    requests: addCounts(registry, {
      name: 'umpire_requests_total',
      help: 'Requests that ended, by route, protocol and HTTP status; of a failure over gRPC the status that REST has for it.',
      labelNames: ['route', 'protocol', 'status'],
    }),
    seconds: addDistributions(registry, {
      name: 'umpire_request_seconds',
      help: 'Time from the first header to the end of the response.',
      labelNames: ['route', 'protocol'],
      bounds: SECONDS,
    }),
    stages: addDistributions(registry, {
      name: 'umpire_stage_seconds',
      help: 'Where the time of requests went: admission, decode, queue, tokenize, infer, store.',
      labelNames: ['stage'],
      bounds: SECONDS,
    }),
    tokens: addCounts(registry, {
      name: 'umpire_input_tokens_total',
      help: 'Tokens of instructions and inputs that were decided on.',
      labelNames: ['model'],
    }),
    unread: addCounts(registry, {
      name: 'umpire_unread_decisions_total',
      help: 'Decisions on texts that the model has no words for, whose probabilities were made more even for it.',
      labelNames: ['model'],
    }),
    learned: addCounts(registry, {
      name: 'umpire_learned_decisions_total',
      help: 'Decisions by what a catalog learned.',
      labelNames: ['model'],
    }),
    choices: addCounts(registry, {
      name: 'umpire_choices_total',
      help: 'Choices that were scored.',
      labelNames: ['model'],
    }),
    confidence: addDistributions(registry, {
      name: 'umpire_confidence',
      help: 'The probability of the selected choice.',
      labelNames: ['model'],
      bounds: SHARES,
    }),
  };
}

/** The parts whose state is read. */
export interface StateSources {
  readonly engine: Engine;
  store(): StoreHealth;
  /** Whether `/health/ready` says yes. */
  ready(): boolean;
  /** Resident bytes of this process near which it refuses work. */
  readonly memoryLimit: number;
  /** How many log lines were dropped because nobody read them. */
  droppedLogLines(): number;
}

/** Adds what is read at each scrape: readiness, the engine, the store, the models and the process itself. */
export function addStateMetrics(registry: Registry, sources: StateSources): void {
  const { engine, store } = sources;
  collectDefaultMetrics({ register: registry });
  const { gauge, gauges, total } = readingsIn(registry);
  gauges(
    'umpire_build_info',
    'Always 1; the labels say which Umpire and which Node this is.',
    ['version', 'node'],
    () => [[{ version: VERSION, node: process.versions.node }, 1]],
  );
  gauge('umpire_ready', '1 while /health/ready says yes.', () => (sources.ready() ? 1 : 0));
  gauge(
    'umpire_memory_limit_bytes',
    'UMPIRE_MEMORY: resident memory of the serving process near which work is refused.',
    () => sources.memoryLimit,
  );
  addEngineMetrics(registry, engine);
  total('umpire_log_lines_dropped_total', 'Log lines that were dropped because nobody read them.', () =>
    sources.droppedLogLines(),
  );
  total('umpire_store_reconnects_total', 'Connections to the store that were made anew.', () => store().reconnects);
  gauge('umpire_store_up', '1 while the store of catalogs and keys answers.', () => (store().up ? 1 : 0));
  gauge(
    'umpire_store_latency_seconds',
    'The last round trip to the store; 0 if it is embedded.',
    () => (store().latencyMs ?? 0) / 1000,
  );
  gauges(
    'umpire_model_ready',
    '1 while a model takes decisions, 0 while it cannot; a disabled one is left out.',
    ['model'],
    () =>
      engine
        .models()
        .filter(({ status }) => status !== 'disabled')
        .map(({ id, revision, status }) => [{ model: `${id}@${revision}` }, status === 'ready' ? 1 : 0]),
  );
}

function addEngineMetrics(registry: Registry, engine: Engine): void {
  const { gauge, total, totals } = readingsIn(registry);
  gauge('umpire_queue_jobs', 'Decisions that wait for an engine.', () => engine.stats().queue.jobs);
  gauge(
    'umpire_queue_seconds',
    'What the waiting decisions will take on one engine.',
    () => engine.stats().queue.cost / 1000,
  );
  gauge('umpire_engines', 'Engine processes that serve.', () => engine.stats().engines.length);
  gauge('umpire_engine_memory_bytes', 'Resident memory of the largest engine.', () =>
    Math.max(0, ...engine.stats().engines.map(({ resident }) => resident)),
  );
  total(
    'umpire_engine_busy_seconds_total',
    'Time that engines spent on decisions, all engines together.',
    () => engine.stats().busy / 1000,
  );
  total(
    'umpire_engine_replacements_total',
    'Engines that were replaced because they were larger than UMPIRE_ENGINE_MEMORY.',
    () => engine.stats().replacements,
  );
  total('umpire_engine_restarts_total', 'Engines that ended without being asked to.', () => engine.stats().restarts);
  totals(
    'umpire_jobs_abandoned_total',
    'Decisions and catalogs that were given up because their engine was stuck with them or crashed.',
    ['cause'],
    () => Object.entries(engine.stats().abandoned).map(([cause, count]) => [{ cause }, count]),
  );
  total('umpire_choices_encoded_total', 'Choices whose vectors had to be made.', () => engine.stats().choices.encoded);
  total(
    'umpire_choices_cached_total',
    'Choices whose vectors were there already.',
    () => engine.stats().choices.cached,
  );
}
