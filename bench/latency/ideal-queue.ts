/** A queue before servers that cost nothing: what is left of a tail when nothing but the runs themselves takes time. */
const ARRIVALS = 200_000;

/**
 * Milliseconds from arrival to answer of Poisson arrivals, first come first served, at `share` of what the servers can do. `times`: of one run,
 * drawn at random.
 */
export function idealQueue(servers: number, times: readonly number[], share: number): readonly number[] {
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  const free = new Array<number>(servers).fill(0);
  const waited: number[] = [];
  let now = 0;
  for (let arrival = 0; arrival < ARRIVALS; arrival += 1) {
    now -= (Math.log(1 - Math.random()) * mean) / (servers * share);
    const first = free.indexOf(Math.min(...free));
    const done = Math.max(now, free[first] ?? 0) + (times[Math.floor(Math.random() * times.length)] ?? 0);
    free[first] = done;
    waited.push(done - now);
  }
  return waited;
}
