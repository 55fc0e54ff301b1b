/**
 * What was refused in the last moments. In a flood nearly everything is refused, and most of what a refusal costs
 * is reading the request; the size of those that were just refused tells that the next one has no place either,
 * before it is read.
 */

/** The refusals of the last moments. */
export interface RecentRefusals {
  /** A job of this cost, milliseconds, was refused. */
  note(cost: number, now: number): void;
  /** The least cost among them, milliseconds; undefined unless there were several in this second. */
  cheapest(now: number): number | undefined;
}

/**
 * So many make a flood. Each second the first ones are read and judged by their size, so the flood's end is seen
 * within a second.
 */
const FLOOD = 8;
const SECOND = 1000;

/** None yet. Times are on the clock of `performance.now()`. */
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
