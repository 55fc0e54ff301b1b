/**
 * When an engine process is replaced for its size. A new process is no smaller than the models that it loads: where
 * these alone are above the limit, only what comes on top of them counts.
 */

/** What is known of a process. */
export interface ProcessSize {
  /** Resident bytes now. */
  readonly resident: number;
  /** Resident bytes when its last model had made its canary decision; undefined where its models changed since. */
  readonly loaded: number | undefined;
  /** Milliseconds since its start. */
  readonly lived: number;
}

/** The replacements of one slot. */
export interface Recycling {
  /**
   * Whether a process is to be replaced now, `now` in milliseconds. Each replacement that follows soon after the
   * previous one makes the wait for the next one longer.
   */
  due(size: ProcessSize, now: number): boolean;
}

/** How large a process may grow whose models alone are above the limit, in sizes that it had with these alone. */
const GROWTH = 1.25;
/** The longest wait between two replacements, in first waits. */
const LONGEST_WAIT = 16;

/** `limit` in bytes; `firstWait`, in milliseconds, is also how long a process has to live before it is replaced. */
export function createRecycling(limit: number, firstWait: number): Recycling {
  let wait = firstWait;
  let last = Number.NEGATIVE_INFINITY;
  return {
    due({ resident, loaded, lived }, now) {
      const bound = loaded !== undefined && loaded > limit ? loaded * GROWTH : limit;
      const since = now - last;
      if (resident <= bound || lived < wait || since < wait) return false;
      // A replacement that helped would not be needed again so soon.
      wait = since < 2 * wait ? Math.min(2 * wait, LONGEST_WAIT * firstWait) : firstWait;
      last = now;
      return true;
    },
  };
}
