/**
 * Loaded before a program, this gives it a wall clock that is `STEPPED_CLOCK_MS` milliseconds ahead, and that SIGUSR2
 * sets back by an hour, as a step of NTP or a machine that wakes up can. The monotonic clock, `performance.now()`, is
 * not changed.
 */
/** Milliseconds by which a signal sets the clock back. */
const HOUR = 3_600_000;
const real = Date.now;
let ahead = Number(process.env.STEPPED_CLOCK_MS ?? 0);
Date.now = () => real() + ahead;
process.on('SIGUSR2', () => {
  ahead -= HOUR;
});
