/** Simulates a queue before servers in which only the work takes time: the tail that no implementation can avoid. */

/** Arrivals that are simulated. */
const ARRIVALS = 200_000;

/**
 * Milliseconds from arrival to answer of Poisson arrivals that are served in their order. `works`: milliseconds of
 * work, from which that of each arrival is drawn at random.
 */
export function idealQueue(servers: number, works: readonly number[], perSecond: number): readonly number[] {
  const free = new Array<number>(servers).fill(0);
  const taken: number[] = [];
  let now = 0;
  for (let arrival = 0; arrival < ARRIVALS; arrival += 1) {
    now -= (Math.log(1 - Math.random()) * 1000) / perSecond;
    const first = free.indexOf(Math.min(...free));
    const done = Math.max(now, free[first] ?? 0) + (works[Math.floor(Math.random() * works.length)] ?? 0);
    free[first] = done;
    taken.push(done - now);
  }
  return taken;
}
