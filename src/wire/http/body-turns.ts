/**
 * Large bodies are worked on one at a time, each in a turn of the event loop of its own: some milliseconds are what
 * one may hold the serving thread, and of many that arrive together none may add to another's, or everybody else would
 * wait for their sum.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Bytes from which on a body waits for its turn; a decision with 300 choices has a fraction of that. */
const LARGE = 64 * 1024;

/** When the last body that waits has its turn. The thread has one event loop, and so one line. */
let last: Promise<void> = Promise.resolve();

/** Waits for the turn of a body with so many bytes; undefined if it need not wait. */
export function bodyTurn(bytes: number): Promise<void> | undefined {
  if (bytes <= LARGE) return undefined;
  last = last.then(() => nextTurn());
  return last;
}
