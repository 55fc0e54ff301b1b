/** Whether the machine itself stood still: times that were measured meanwhile say nothing about the service. */

export interface Stillness {
  /** The longest that this process was held up since the last look, milliseconds. */
  look(): number;
}

const INTERVAL = 20;

/** Watches from now on. */
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
