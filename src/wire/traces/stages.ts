/** Where an exchange's time went, as stages that may lie within one another. */
import type { Exchange } from '../http/exchange.ts';

/** A stage; times in milliseconds on the clock of `performance.now()`. The stages in it lie within it. */
export interface Stage {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly inner: readonly Stage[];
}

/**
 * The stages of an exchange that is over, by the names that its metrics and its log line have. Engines report how long
 * each of their stages took, not when: the rest of the time that the decision was with them is counted as messages
 * there and back, half for each.
 */
export function stagesOf(exchange: Exchange): readonly Stage[] {
  const { startedAt } = exchange;
  const { admittedAt, invokedAt, endedAt, engineSince, engineUntil } = exchange.record;
  const within = (name: string, start: number, end: number): Stage => ({
    name,
    start: clamp(start, startedAt, endedAt),
    end: clamp(end, startedAt, endedAt),
    inner: [],
  });
  const calls = exchange.storeBudget.calls.map(({ start, end }) => within('store', start, end));
  const stages: Stage[] = [];
  if (admittedAt !== undefined) {
    const admission = within('admission', startedAt, admittedAt);
    stages.push({ ...admission, inner: calls.filter(({ end }) => end <= admission.end) });
    stages.push(within('decode', admittedAt, invokedAt ?? endedAt));
  }
  stages.push(...calls.filter(({ end }) => admittedAt === undefined || end > admittedAt));
  if (engineSince !== undefined) {
    const engine = within('engine', engineSince, engineUntil ?? endedAt);
    stages.push({ ...engine, inner: engineStages(engine, exchange.facts.timings) });
  }
  return stages;
}

function engineStages(engine: Stage, timings: Readonly<Record<string, number>> | undefined): readonly Stage[] {
  if (timings === undefined) return [];
  const { queue = 0, tokenize = 0, infer = 0 } = timings;
  const messages = Math.max(0, engine.end - engine.start - queue - tokenize - infer);
  let now = engine.start;
  const next = (name: string, milliseconds: number): Stage => {
    const start = now;
    now = Math.min(engine.end, now + milliseconds);
    return { name, start, end: now, inner: [] };
  };
  const waited = next('queue', queue);
  now += messages / 2;
  return [waited, next('tokenize', tokenize), next('infer', infer)];
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
