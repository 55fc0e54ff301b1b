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

/** One value of a metric with labels. */
type Reading = readonly [labels: Readonly<Record<string, string>>, value: number];

/** What is read at a scrape: a value without labels, or those of each label. */
type Read = () => number | Iterable<Reading>;

/** Adds a metric: a counter if its name ends in `_total`, whose owner alone counts it; or else a gauge. */
type Add = (name: string, help: string, read: Read, labelNames?: string[]) => void;

/** Adds all of them. */
export function addStateMetrics(registry: Registry, sources: StateSources): void {
  collectDefaultMetrics({ register: registry });
  const add: Add = (name, help, read, labelNames = []) => {
    function collect(this: Counter | Gauge): void {
      this.reset();
      const found = read();
      for (const [labels, value] of typeof found === 'number' ? [[{}, found] as const] : found) this.inc(labels, value);
    }
    const options = { name, help, labelNames, registers: [registry], collect };
    if (name.endsWith('_total')) new Counter(options);
    else new Gauge(options);
  };
  addProcessMetrics(add, sources);
  addEngineMetrics(add, sources.engine);
  addInferenceMetrics(add, sources.engine);
  addHoldingMetrics(add, sources);
}

/** The process itself, its store and its models. */
function addProcessMetrics(add: Add, sources: StateSources): void {
  const { engine, store, memoryLimit } = sources;
  const build = { version: VERSION, node: process.versions.node };
  const builds = 'Always 1; the labels say which Umpire and which Node this is.';
  add('umpire_build_info', builds, () => [[build, 1]], ['version', 'node']);
  add('umpire_ready', '1 while /health/ready says yes.', () => (sources.ready() ? 1 : 0));
  const limit = 'UMPIRE_MEMORY: resident memory of the serving process near which work is refused.';
  add('umpire_memory_limit_bytes', limit, () => memoryLimit);
  const dropped = 'Log lines that were dropped because nobody read them.';
  add('umpire_log_lines_dropped_total', dropped, () => sources.droppedLogLines());
  add('umpire_store_reconnects_total', 'Connections to the store that were made anew.', () => store().reconnects);
  add('umpire_store_up', '1 while the store of catalogs and keys answers.', () => (store().up ? 1 : 0));
  const latency = 'The last round trip to the store; 0 if it is embedded.';
  add('umpire_store_latency_seconds', latency, () => (store().latencyMs ?? 0) / 1000);
  add(
    'umpire_model_ready',
    '1 while a model takes decisions, 0 while it cannot; a disabled one is left out.',
    () =>
      engine
        .models()
        .filter(({ status }) => status !== 'disabled')
        .map(({ id, revision, status }) => [{ model: `${id}@${revision}` }, status === 'ready' ? 1 : 0]),
    ['model'],
  );
}

function addEngineMetrics(add: Add, engine: Engine): void {
  const stats = () => engine.stats();
  add('umpire_queue_jobs', 'Jobs that wait for an engine.', () => stats().queue.jobs);
  add('umpire_queue_seconds', 'What the waiting decisions will take on one engine.', () => stats().queue.cost / 1000);
  add('umpire_engines', 'Engine processes that serve.', () => stats().engines.length);
  add('umpire_engine_memory_bytes', 'Resident memory of the largest engine.', () =>
    Math.max(0, ...stats().engines.map(({ resident }) => resident)),
  );
  const busy = 'Time that engines spent on decisions, all engines together.';
  add('umpire_engine_busy_seconds_total', busy, () => stats().busy / 1000);
  const replaced = 'Engines that were replaced because they were larger than UMPIRE_ENGINE_MEMORY.';
  add('umpire_engine_replacements_total', replaced, () => stats().replacements);
  add('umpire_engine_restarts_total', 'Engines that ended without being asked to.', () => stats().restarts);
  const abandoned = 'Decisions and catalogs that were given up because their engine was stuck with them or crashed.';
  add('umpire_jobs_abandoned_total', abandoned, () => each('cause', Object.entries(stats().abandoned)), ['cause']);
  add('umpire_choices_encoded_total', 'Choices whose vectors had to be made.', () => stats().choices.encoded);
  add('umpire_choices_cached_total', 'Choices whose vectors were there already.', () => stats().choices.cached);
}

/** Inference servers, model by model. There are no values where no model has a server. */
function addInferenceMetrics(add: Add, engine: Engine): void {
  const metrics: readonly (readonly [name: string, help: string, read: (stats: InferenceStats) => number])[] = [
    ['umpire_inference_seconds_total', 'Time of the answered calls.', ({ seconds }) => seconds],
    ['umpire_inference_rows_total', 'Rows of the answered calls.', ({ rows }) => rows],
    ['umpire_inference_retries_total', 'Calls that were made again.', ({ retries }) => retries],
    ['umpire_inference_decisions', 'Decisions that are at a server.', ({ inFlight }) => inFlight],
    ['umpire_inference_decisions_limit', 'Decisions that may be at a server at a time.', (stats) => stats.concurrency],
    ['umpire_inference_memory_bytes', 'Resident memory of the process that asks a server.', ({ resident }) => resident],
  ];
  for (const [name, help, read] of metrics) {
    add(name, help, () => engine.stats().inference.map((stats) => [{ model: stats.model }, read(stats)]), ['model']);
  }
  const split = (label: string, counts: (stats: InferenceStats) => object) => (): readonly Reading[] =>
    engine.stats().inference.flatMap((stats) => each(label, Object.entries(counts(stats)), { model: stats.model }));
  add(
    'umpire_inference_calls_total',
    'Calls of inference servers that ended: answered, unavailable, refused, malformed, timed_out, canceled.',
    split('outcome', ({ outcomes }) => outcomes),
    ['model', 'outcome'],
  );
  add(
    'umpire_inference_tokens_total',
    'Tokens that inference servers say they have read (in) and written (out).',
    split('direction', ({ tokens }) => tokens),
    ['model', 'direction'],
  );
}

/** What clients hold of the port, what was refused or given up for it, and the faults that nothing caught. */
function addHoldingMetrics(add: Add, { holdings, faults }: StateSources): void {
  add('umpire_connections', 'Connections that are open.', () => holdings().connections);
  add(
    'umpire_requests_open',
    'Requests that have a place: those that have begun and whose response has not left, but for refused ones.',
    () => holdings().requests,
  );
  add('umpire_watches', 'Streams of Health.Watch that are open.', () => holdings().watches);
  add('umpire_unread_bytes', 'Bytes of responses that wait to be read.', () => holdings().unread);
  add('umpire_client_addresses', 'Addresses that something is counted for.', () => holdings().addresses);
  const byReason = (name: string, help: string, counts: () => Iterable<readonly [string, number]>): void =>
    add(name, help, () => each('reason', counts()), ['reason']);
  byReason(
    'umpire_connections_refused_total',
    'New connections that were closed: address (it had too many), rate (it was beyond its rate), full (none was idle).',
    () => Object.entries(holdings().tally.refused),
  );
  const evicted = 'Connections that were idle or did not move and were closed to make room for new ones.';
  add('umpire_connections_evicted_total', evicted, () => holdings().tally.evicted);
  byReason(
    'umpire_given_up_total',
    'Requests that were ended: unread (nobody read the response), unfinished (the request never ended), displaced (a newer one needed the place).',
    () => Object.entries(holdings().tally.givenUp),
  );
  const beyond = 'Requests that were refused since their address sent too many; no other metric counts them.';
  add('umpire_requests_beyond_rate_total', beyond, () => holdings().tally.beyondRate);
  add('umpire_resets_total', 'Requests that their callers took back.', () => holdings().tally.resets);
  add('umpire_blocks_total', 'Times that an address was not served for a while.', () => holdings().tally.blocked);
  const uncaught = 'Faults that nothing caught, by their code or kind. The process drains and ends.';
  byReason('umpire_faults_total', uncaught, () => faults);
}

/** Counts by the value of a label, each with `others`. */
function each(
  label: string,
  counts: Iterable<readonly [value: string, count: number]>,
  others: Readonly<Record<string, string>> = {},
): readonly Reading[] {
  return Array.from(counts, ([value, count]) => [{ ...others, [label]: value }, count]);
}
