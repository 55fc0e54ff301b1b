/**
 * Keeps long work from holding up the process: other decisions, cancellations and reports of progress get their turn in
 * between.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { JobStopped } from '../family.ts';

/** Called between two steps of work. Throws JobStopped when the job is no longer wanted. */
export type Pace = () => Promise<void>;

/** The longest that work may go on without a pause, milliseconds. */
const LONGEST = 8;

/** The pace of one job. */
export function createPace(signal: AbortSignal): Pace {
  let since = performance.now();
  return async () => {
    if (performance.now() - since >= LONGEST) {
      await nextTurn();
      since = performance.now();
    }
    if (signal.aborted) throw new JobStopped();
  };
}
