/** A clock that stands still while a busy machine keeps a process from running: bounds of time then hold anywhere. */

/** Milliseconds between two ticks of it, and what it advances at most from one to the next beside the work done. */
const [TICK, MOST] = [5, 25];

/** Has `performance.now()` of this process go by that clock from here on. */
export function goByOwnTime(): void {
  const read = performance.now.bind(performance);
  let [own, last, usage] = [read(), read(), process.cpuUsage()];
  const advance = (): number => {
    const [now, used] = [read(), process.cpuUsage()];
    const worked = (used.user + used.system - usage.user - usage.system) / 1000;
    own += Math.min(now - last, MOST + worked);
    [last, usage] = [now, used];
    return own;
  };
  setInterval(advance, TICK).unref();
  performance.now = advance;
}
