/**
 * Loaded before a program, gives it a wall clock that is `STEPPED_CLOCK_MS` milliseconds ahead, and on SIGUSR2 one hour
 * behind what it was, as a step of NTP or a machine that wakes up makes it. The clock that cannot be set back,
 * `performance.now()`, stays as it is.
 */
const HOUR = 3_600_000;
const real = Date.now;
let ahead = Number(process.env.STEPPED_CLOCK_MS ?? 0);
Date.now = () => real() + ahead;
process.on('SIGUSR2', () => {
  ahead -= HOUR;
});
