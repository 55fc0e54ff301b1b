/** The greatest of the durations that were noted in the last one to two minutes. */
export interface Slowest {
  note(milliseconds: number): void;
  /** Milliseconds; 0 if nothing was noted in that time. */
  read(): number;
}

/** The length of a window. */
const WINDOW_MS = 60_000;

/**
 * Keeps the maximum of two windows, so that a value is forgotten after one to two minutes without a list of them all.
 * `clock` in milliseconds.
 */
export function createSlowest(clock: () => number): Slowest {
  let window = 0;
  let current = 0;
  let previous = 0;
  const turn = (): void => {
    const now = Math.floor(clock() / WINDOW_MS);
    if (now === window) return;
    previous = now === window + 1 ? current : 0;
    current = 0;
    window = now;
  };
  return {
    note(milliseconds) {
      turn();
      current = Math.max(current, milliseconds);
    },
    read() {
      turn();
      return Math.max(current, previous);
    },
  };
}
