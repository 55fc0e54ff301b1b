/** The time of day on a clock that does not jump between two spans of one trace. */

/** Seconds since the epoch and the nanoseconds in the last one. */
export type HrTime = [seconds: number, nanoseconds: number];

/** Turns times of `performance.now()` into times of day. */
export interface WallClock {
  /** To be called before the spans of an exchange are timed: follows the system's clock if that was set. */
  adjust(): void;
  at(milliseconds: number): HrTime;
}

/** Milliseconds by which the clocks may differ because they are read in turn and one has whole milliseconds only. */
const TOLERANCE = 5;

/** A clock that follows the system's where `adjust` finds the two apart. */
export function createWallClock(): WallClock {
  let offset = performance.timeOrigin;
  return {
    adjust() {
      const now = Date.now() - performance.now();
      if (Math.abs(now - offset) > TOLERANCE) offset = now;
    },
    at(milliseconds) {
      // Wholes and fractions are added separately: a double has room for an hour in nanoseconds, but not for an epoch.
      const fraction = milliseconds - Math.floor(milliseconds) + (offset - Math.floor(offset));
      const carried = Math.floor(fraction);
      const whole = Math.floor(offset) + Math.floor(milliseconds) + carried;
      const seconds = Math.floor(whole / 1000);
      return [seconds, (whole - seconds * 1000) * 1e6 + Math.floor((fraction - carried) * 1e6)];
    },
  };
}
