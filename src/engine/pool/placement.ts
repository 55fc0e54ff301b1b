/** Which engine a decision goes to. */
import type { EngineProcess } from './engine-process.ts';

/** A second job is sent to an engine whose work is over within this many milliseconds, so that it need not wait for the next. */
const prefetchHorizon = 20;

/** The engines that could take a decision now: the idle ones, or else those that are nearly done with their only job. */
export function freeEngines(engines: readonly EngineProcess[]): readonly EngineProcess[] {
  const idle = engines.filter(({ inFlight }) => inFlight === 0);
  if (idle.length > 0) return idle;
  return engines.filter((process) => process.inFlight === 1 && process.remaining() <= prefetchHorizon);
}

/** The engine that has the model loaded and will be done with a job first; `costOn` estimates the job alone, milliseconds. */
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
