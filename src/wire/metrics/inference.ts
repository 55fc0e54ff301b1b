/** What an operator sees of inference servers, model by model. There are no values where no model has a server. */
import type { Registry } from 'prom-client';
import type { Engine, InferenceStats } from '../../engine/engine.ts';
import { type Reading, readingsIn } from './readings.ts';

const MODEL = ['model'];

/** Adds metrics whose values are read at each scrape. */
export function addInferenceMetrics(registry: Registry, engine: Engine): void {
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
    MODEL,
    each(({ seconds }) => seconds),
  );
  totals(
    'umpire_inference_rows_total',
    'Rows of the answered calls.',
    MODEL,
    each(({ rows }) => rows),
  );
  totals(
    'umpire_inference_retries_total',
    'Calls that were made again.',
    MODEL,
    each(({ retries }) => retries),
  );
  gauges(
    'umpire_inference_decisions',
    'Decisions that are at a server.',
    MODEL,
    each(({ inFlight }) => inFlight),
  );
  gauges(
    'umpire_inference_decisions_limit',
    'Decisions that may be at a server at a time.',
    MODEL,
    each(({ concurrency }) => concurrency),
  );
  gauges(
    'umpire_inference_memory_bytes',
    'Resident memory of the process that asks a server.',
    MODEL,
    each(({ resident }) => resident),
  );
}
