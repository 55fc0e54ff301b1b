/** Counts what the engines did, for `Engine.stats`. */
import type { EngineStats } from '../engine.ts';
import type { JobResult } from '../worker/messages.ts';

/** How a process that was told to end ends. */
const ORDERLY = 'exited with code 0';

export interface Tally {
  finished(result: JobResult): void;
  /** A process ended. */
  ended(reason: string): void;
  read(now: Pick<EngineStats, 'queue' | 'engines' | 'inference'>): EngineStats;
}

/** A tally at zero. */
export function createTally(): Tally {
  let busy = 0;
  let restarts = 0;
  let encoded = 0;
  let cached = 0;
  return {
    finished(result) {
      if (result.kind !== 'scored') return;
      busy += result.tokenize + result.infer;
      encoded += result.encoded;
      cached += result.probabilities.length - result.encoded;
    },
    ended(reason) {
      if (reason !== ORDERLY) restarts += 1;
    },
    read: (now) => ({ ...now, busy, restarts, choices: { encoded, cached } }),
  };
}
