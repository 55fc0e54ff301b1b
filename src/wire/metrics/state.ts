/**
 * Metrics of what other parts count or measure: the process, the engine, the store, the models, inference servers and
 * the bounds of the port. Their values are read from there at each scrape.
 */
import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import type { Engine, InferenceStats } from '../../engine/engine.ts';
import type { StoreHealth } from '../../stores/stores.ts';
import { VERSION } from '../../version.ts';
import type { HoldingState } from '../holdings/holdings.ts';

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
  holdings(): HoldingState;
  /** Counts of faults that nothing caught, by reason. */
  readonly faults: ReadonlyMap<string, number>;
}

/** Adds all of them. */
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
  addInferenceMetrics(registry, engine);
  addHoldingMetrics(registry, sources);
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
  gauge('umpire_queue_jobs', 'Jobs that wait for an engine.', () => engine.stats().queue.jobs);
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

/** Inference servers, model by model. There are no values where no model has a server. */
function addInferenceMetrics(registry: Registry, engine: Engine): void {
  const { gauges, totals } = readingsIn(registry);
  const each = (read: (stats: InferenceStats) => number) => (): readonly Reading[] =>
    engine.stats().inference.map((stats) => [{ model: stats.model }, read(stats)]);
  totals(
    'umpire_inference_calls_total',
    'Calls of inference servers that ended: answered, unavailable, refused, malformed, timed_out, canceled.',
    ['model', 'outcome'],
    () =>
      engine
        .stats()
        .inference.flatMap(({ model, outcomes }) =>
          Object.entries(outcomes).map(([outcome, count]): Reading => [{ model, outcome }, count]),
        ),
  );
  totals(
    'umpire_inference_seconds_total',
    'Time of the answered calls.',
    ['model'],
    each(({ seconds }) => seconds),
  );
  totals(
    'umpire_inference_rows_total',
    'Rows of the answered calls.',
    ['model'],
    each(({ rows }) => rows),
  );
  totals(
    'umpire_inference_tokens_total',
    'Tokens that inference servers say they have read (in) and written (out).',
    ['model', 'direction'],
    () =>
      engine
        .stats()
        .inference.flatMap(({ model, tokens }) =>
          Object.entries(tokens).map(([direction, count]): Reading => [{ model, direction }, count]),
        ),
  );
  totals(
    'umpire_inference_retries_total',
    'Calls that were made again.',
    ['model'],
    each(({ retries }) => retries),
  );
  gauges(
    'umpire_inference_decisions',
    'Decisions that are at a server.',
    ['model'],
    each(({ inFlight }) => inFlight),
  );
  gauges(
    'umpire_inference_decisions_limit',
    'Decisions that may be at a server at a time.',
    ['model'],
    each(({ concurrency }) => concurrency),
  );
  gauges(
    'umpire_inference_memory_bytes',
    'Resident memory of the process that asks a server.',
    ['model'],
    each(({ resident }) => resident),
  );
}

/** What clients hold of the port, what was refused or given up for it, and the faults that nothing caught. */
function addHoldingMetrics(registry: Registry, { holdings, faults }: StateSources): void {
  const { gauge, total, totals } = readingsIn(registry);
  const byReason = (counts: Iterable<readonly [reason: string, count: number]>): readonly Reading[] =>
    Array.from(counts, ([reason, count]) => [{ reason }, count]);
  gauge('umpire_connections', 'Connections that are open.', () => holdings().connections);
  gauge(
    'umpire_requests_open',
    'Requests that have a place: those that have begun and whose response has not left, but for refused ones.',
    () => holdings().requests,
  );
  gauge('umpire_watches', 'Streams of Health.Watch that are open.', () => holdings().watches);
  gauge('umpire_unread_bytes', 'Bytes of responses that wait to be read.', () => holdings().unread);
  gauge('umpire_client_addresses', 'Addresses that something is counted for.', () => holdings().addresses);
  totals(
    'umpire_connections_refused_total',
    'New connections that were closed: address (it had too many), rate (too many a second), full (none was idle).',
    ['reason'],
    () => byReason(Object.entries(holdings().tally.refused)),
  );
  total(
    'umpire_connections_evicted_total',
    'Connections that were idle or did not move and were closed to make room for new ones.',
    () => holdings().tally.evicted,
  );
  totals(
    'umpire_given_up_total',
    'Requests that were ended: unread (nobody read the response), unfinished (the request never ended), displaced (a newer one needed the place).',
    ['reason'],
    () => byReason(Object.entries(holdings().tally.givenUp)),
  );
  totals('umpire_watches_ended_total', 'Streams of Health.Watch that were ended: age, displaced.', ['reason'], () =>
    byReason(Object.entries(holdings().tally.watchesEnded)),
  );
  total(
    'umpire_requests_beyond_rate_total',
    'Requests that were refused since their address sent too many; no other metric counts them.',
    () => holdings().tally.beyondRate,
  );
  total('umpire_resets_total', 'Requests that their callers took back.', () => holdings().tally.resets);
  total('umpire_blocks_total', 'Times that an address was not served for a while.', () => holdings().tally.blocked);
  totals(
    'umpire_faults_total',
    'Faults that nothing caught, by their code or kind. The process drains and ends.',
    ['reason'],
    () => byReason(faults),
  );
}

/** One value of a metric with labels. */
type Reading = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Adds such metrics to a registry. A total is copied from its owner, which alone counts it. */
interface Readings {
  gauge(name: string, help: string, read: () => number): void;
  gauges(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Reading>): void;
  total(name: string, help: string, read: () => number): void;
  totals(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Reading>): void;
}

/** Readings that are added to `registry`. */
function readingsIn(registry: Registry): Readings {
  const readings: Readings = {
    gauge: (name, help, read) => readings.gauges(name, help, [], () => [[{}, read()]]),
    gauges(name, help, labelNames, read) {
      new Gauge({
        name,
        help,
        labelNames: [...labelNames],
        registers: [registry],
        collect() {
          this.reset();
          for (const [labels, value] of read()) this.set(labels, value);
        },
      });
    },
    total: (name, help, read) => readings.totals(name, help, [], () => [[{}, read()]]),
    totals(name, help, labelNames, read) {
      new Counter({
        name,
        help,
        labelNames: [...labelNames],
        registers: [registry],
        collect() {
          this.reset();
          for (const [labels, value] of read()) this.inc(labels, value);
        },
      });
    },
  };
  return readings;
}
