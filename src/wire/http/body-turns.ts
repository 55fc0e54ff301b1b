/**
 * Large bodies are processed one at a time, each in a turn of the event loop of its own: one may hold the serving
 * thread for some milliseconds, but if many that arrive together were processed in one turn, everybody else would wait
 * for the sum of them.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Bytes above which a body waits for its turn; a decision with 300 choices has a fraction of that. */
export const LARGE = 64 * 1024;

/** Resolves when the last body that waits has its turn. The thread has one event loop, and so one queue. */
let last: Promise<void> = Promise.resolve();

/** Resolves when it is the turn of a body with this many bytes; undefined if it need not wait. */
export function bodyTurn(bytes: number): Promise<void> | undefined {
  if (bytes <= LARGE) return undefined;
  last = last.then(() => nextTurn());
  return last;
}
