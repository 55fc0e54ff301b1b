/** Which engine a decision goes to. */
import type { EngineProcess } from '../processes/engine-process.ts';

/** An engine may be given a second job if its only one is over within this many milliseconds. */
const PREFETCH_HORIZON = 20;

/**
 * The engines that could take one of `waiting` decisions now: those that work on fewer jobs than they may. When there
 * are none and many wait, also those that are nearly done with their only job, so that they need not wait for the next;
 * with few waiting, a job that is bound to an engine early could find another free before.
 */
export function freeEngines(engines: readonly EngineProcess[], waiting: number): readonly EngineProcess[] {
  const idle = engines.filter(({ inFlight, concurrency }) => inFlight < concurrency);
  if (idle.length > 0 || waiting <= engines.length) return idle;
  return engines.filter(
    (process) => process.concurrency === 1 && process.inFlight === 1 && process.remaining() <= PREFETCH_HORIZON,
  );
}

/**
 * The engine that has the model loaded and will be done with a job first; `costOn` estimates the job alone,
 * milliseconds.
 */
export function soonestDone(
  engines: readonly EngineProcess[],
  key: string,
  costOn: (process: EngineProcess) => number,
): EngineProcess | undefined {
  let soonest: EngineProcess | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const process of engines) {
    if (!process.models.has(key)) continue;
    const expected = process.remaining() + costOn(process);
    if (expected < least) [soonest, least] = [process, expected];
  }
  return soonest;
}
