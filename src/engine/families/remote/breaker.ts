/**
 * Decides when a server is not asked any more: after several decisions in a row that it failed at, or at once after an
 * answer that makes asking again pointless. A decision that ran out of its caller's time counts as a failure if the
 * server made no other meanwhile and the wait was long enough to mean something. Whether the server is well again is
 * found out by the canary.
 */
import type { CallFailed } from './call-failed.ts';

/** Watches the decisions of one server. */
export interface Breaker {
  succeeded(): void;
  /** `since`: when the decision began, on the clock of `performance.now()`. `outOfTime`: whether its time was up. */
  failed(error: CallFailed, since: number, outOfTime: boolean): void;
  /** Forgets all failures. */
  reset(): void;
}

/** Failures in a row after which the server is not asked any more. */
const TOLERATED = 5;
/** Milliseconds that a decision whose time was up must have waited to count as a failure of the server. */
const MEANINGFUL = 1000;

/**
 * `open` is called once, at the last tolerated failure or the first that is beyond doubt, and again only after a
 * success or a reset.
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
