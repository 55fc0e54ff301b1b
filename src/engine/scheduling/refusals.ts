/**
 * Remembers what was just refused. In a flood nearly every request is refused, and most of the cost of a refusal is
 * reading the request. The costs of the jobs that were just refused show, before the next request is read, that there
 * is no room for it either.
 */

/** The refusals of the last moments. */
export interface RecentRefusals {
  /** A job of this cost, milliseconds, was refused. */
  note(cost: number, now: number): void;
  /** The least cost among them, milliseconds; undefined unless there was a flood in the current second. */
  cheapest(now: number): number | undefined;
}

/**
 * This many refusals make a flood. In each second the first requests are still read and judged by their size, so the
 * end of the flood is noticed within a second.
 */
const FLOOD = 8;
const SECOND = 1000;

/** No refusals at first. Times are on the clock of `performance.now()`. */
export function createRecentRefusals(): RecentRefusals {
  let since = Number.NEGATIVE_INFINITY;
  let count = 0;
  let least = 0;
  return {
    note(cost, now) {
      if (now - since >= SECOND) {
        since = now;
        count = 0;
        least = cost;
      }
      count += 1;
      least = Math.min(least, cost);
    },
    cheapest: (now) => (now - since < SECOND && count >= FLOOD ? least : undefined),
  };
}
