/**
 * Says when a server is to be left alone: after some decisions in a row that it failed at, or at once where it said
 * that it will not be asked so. One that ran out of its caller's time counts if no other was made while it waited and
 * if that was long enough to mean something. Whether the server is well again is for the canary to find out.
 */
import type { CallFailed } from './call-failed.ts';

/** Watches the decisions of one server. */
export interface Breaker {
  succeeded(): void;
  /**
   * `since`: when the decision began, on the clock of `performance.now()`. `outOfTime`: whether it had no more time.
   */
  failed(error: CallFailed, since: number, outOfTime: boolean): void;
  /** Forgets all failures. */
  reset(): void;
}

/** Failures in a row at which the server is left alone. */
const TOLERATED = 5;
/** Milliseconds that a decision must have waited in vain to count as a failure of the server. */
const MEANINGFUL = 1000;

/**
 * `open` is called once, at the last tolerated failure or the first that is beyond doubt, and again only after a reset.
 */
export function createBreaker(open: (reason: string) => void): Breaker {
  let failures = 0;
  let lastAnswer = 0;
  return {
    succeeded() {
      failures = 0;
      lastAnswer = performance.now();
    },
    failed({ outcome, blame, message }, since, outOfTime) {
      if ((outcome === 'canceled' && !outOfTime) || blame === 'request') return;
      if (blame === 'unfit') {
        if (failures < TOLERATED) open(message);
        failures = TOLERATED;
        return;
      }
      if (outOfTime && (lastAnswer > since || performance.now() - since < MEANINGFUL)) return;
      if (++failures === TOLERATED) open(`it fails again and again: ${message}`);
    },
    reset() {
      failures = 0;
    },
  };
}
