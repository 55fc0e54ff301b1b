/** What an operator sees of inference servers, model by model. There is nothing where no model has one. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Engine, InferenceStats } from '../../engine/engine.ts';

/** Adds what is read when somebody asks. */
export function addInferenceMetrics(registry: Registry, engine: Engine): void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: (stats: InferenceStats) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['model'],
      registers,
      collect() {
        this.reset();
        for (const stats of engine.stats().inference) this.set({ model: stats.model }, read(stats));
      },
    });
  };
  const total = (name: string, help: string, read: (stats: InferenceStats) => number): void => {
    new Counter({
      name,
      help,
      labelNames: ['model'],
      registers,
      collect() {
        this.reset();
        for (const stats of engine.stats().inference) this.inc({ model: stats.model }, read(stats));
      },
    });
  };
  new Counter({
    name: 'umpire_inference_calls_total',
    help: 'Calls of inference servers that ended: answered, unavailable, refused, malformed, timed_out, canceled.',
    labelNames: ['model', 'outcome'],
    registers,
    collect() {
      this.reset();
      for (const { model, outcomes } of engine.stats().inference)
        for (const [outcome, count] of Object.entries(outcomes)) this.inc({ model, outcome }, count);
    },
  });
  total('umpire_inference_seconds_total', 'Time of the answered calls.', ({ seconds }) => seconds);
  total('umpire_inference_rows_total', 'Rows of the answered calls.', ({ rows }) => rows);
  total('umpire_inference_retries_total', 'Calls that were made again.', ({ retries }) => retries);
  gauge('umpire_inference_decisions', 'Decisions that are at a server.', ({ inFlight }) => inFlight);
  gauge(
    'umpire_inference_decisions_limit',
    'Decisions that may be at a server at a time.',
    ({ concurrency }) => concurrency,
  );
  gauge(
    'umpire_inference_memory_bytes',
    'Resident memory of the process that asks a server.',
    (stats) => stats.resident,
  );
}
