/** Counts what the engines did, for `Engine.stats`. */
import type { EngineStats } from '../engine.ts';
import type { Death } from '../processes/deaths.ts';
import type { JobResult } from '../worker/messages.ts';

/** What the processes of all groups have done since the start. */
export interface Tally {
  /** A job is over; only one that was scored counts. */
  finished(result: JobResult): void;
  /** A process was replaced because it was too large. */
  replaced(): void;
  /** A process ended, whatever the reason. */
  ended(death: Death): void;
  /** A job was given up because its engine ended while working on it. */
  abandoned(death: Death): void;
  /** The counts so far, with the state that the caller knows. */
  read(now: Pick<EngineStats, 'queue' | 'engines' | 'inference'>): EngineStats;
}

/** Starts to count, at zero. */
export function createTally(): Tally {
  let busy = 0;
  let replacements = 0;
  let restarts = 0;
  const abandoned = { stuck: 0, crashed: 0 };
  let encoded = 0;
  let cached = 0;
  return {
    finished(result) {
      if (result.kind !== 'scored') return;
      busy += result.tokenize + result.infer;
      encoded += result.encoded;
      cached += result.probabilities.length - result.encoded;
    },
    replaced() {
      replacements += 1;
    },
    ended({ cause }) {
      if (cause !== 'drained') restarts += 1;
    },
    abandoned({ cause }) {
      if (cause === 'stuck' || cause === 'crashed') abandoned[cause] += 1;
    },
    read: (now) => ({
      ...now,
      busy,
      replacements,
      restarts,
      abandoned: { ...abandoned },
      choices: { encoded, cached },
    }),
  };
}
