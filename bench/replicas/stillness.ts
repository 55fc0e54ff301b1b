/** Detects whether the machine itself stood still: times that were measured then say nothing about the service. */

/** A watch on this process. */
export interface Stillness {
  /** The longest time that this process was held up since the last look, milliseconds. */
  look(): number;
}

/** Milliseconds between two looks at the clock. */
const INTERVAL = 20;

/** Begins to watch. */
export function watchStillness(): Stillness {
  let last = performance.now();
  let longest = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - INTERVAL);
    last = now;
  }, INTERVAL);
  timer.unref();
  return {
    look() {
      const seen = longest;
      longest = 0;
      return seen;
    },
  };
}
