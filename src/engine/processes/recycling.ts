/**
 * When an engine process is replaced for its size: when it is still too large after it has given back what it does not
 * use. A large request makes it larger for moments. A new process is no smaller than the models that it loads: where
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
  /** Whether it has just given back what it does not use. */
  readonly released: boolean;
}

/** The replacements of one slot. */
export interface Recycling {
  /**
   * What is to be done about the size of a process, `now` in milliseconds: it gives back what it does not use, or is
   * replaced. Each replacement that follows soon after the previous one makes the wait for the next one longer.
   */
  due(size: ProcessSize, now: number): 'nothing' | 'release' | 'replacement';
}

/** How large a process may grow whose models alone are above the limit, in sizes that it had with these alone. */
const GROWTH = 1.25;
/** The longest wait between two replacements, in first waits. */
const LONGEST_WAIT = 16;
/** Milliseconds between two times that a process gives memory back, which takes tens of milliseconds. */
const BETWEEN_RELEASES = 5000;

/** `limit` in bytes; `firstWait`, in milliseconds, is also how long a process has to live before it is replaced. */
export function createRecycling(limit: number, firstWait: number): Recycling {
  let wait = firstWait;
  let last = Number.NEGATIVE_INFINITY;
  let lastRelease = Number.NEGATIVE_INFINITY;
  return {
    due({ resident, loaded, lived, released }, now) {
      const bound = loaded !== undefined && loaded > limit ? loaded * GROWTH : limit;
      const since = now - last;
      if (resident <= bound || lived < wait || since < wait) return 'nothing';
      if (!released) {
        if (now - lastRelease < BETWEEN_RELEASES) return 'nothing';
        lastRelease = now;
        return 'release';
      }
      // A replacement that helped would not be needed again so soon.
      wait = since < 2 * wait ? Math.min(2 * wait, LONGEST_WAIT * firstWait) : firstWait;
      last = now;
      return 'replacement';
    },
  };
}
