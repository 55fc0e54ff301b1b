/**
 * Says when a server is to be left alone: after some decisions in a row that it failed at. One that ran out of its
 * caller's time counts if no other was made while it waited and if that was long enough to mean something. Whether the
 * server is well again is for the canary to find out.
 */
import type { CallFailed } from './call-failed.ts';

/** Watches the decisions of one server. */
export interface Breaker {
  succeeded(): void;
  /**
   * `since`: when the decision began, on the clock of `performance.now()`. `outOfTime`: whether it had no more time.
   */
  failed(error: CallFailed, since: number, outOfTime: boolean): void;
  /** Begins anew. */
  reset(): void;
}

const TOLERATED = 5;
const MEANINGFUL = 1000;
/**
 * gRPC statuses by which a server speaks of one request alone, so it is well: INVALID_ARGUMENT, RESOURCE_EXHAUSTED,
 * OUT_OF_RANGE.
 */
const ABOUT_THE_REQUEST: ReadonlySet<number | undefined> = new Set([3, 8, 11]);

/** `open` is called once, at the last tolerated failure, and again only after a reset. */
export function createBreaker(open: (reason: string) => void): Breaker {
  let failures = 0;
  let lastAnswer = 0;
  return {
    succeeded() {
      failures = 0;
      lastAnswer = performance.now();
    },
    failed({ outcome, code, message }, since, outOfTime) {
      if ((outcome === 'canceled' && !outOfTime) || (outcome === 'refused' && ABOUT_THE_REQUEST.has(code))) return;
      if (outOfTime && (lastAnswer > since || performance.now() - since < MEANINGFUL)) return;
      if (++failures === TOLERATED) open(message);
    },
    reset() {
      failures = 0;
    },
  };
}
