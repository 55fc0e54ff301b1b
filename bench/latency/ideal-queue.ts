/** A queue before servers that cost nothing: what is left of a tail when nothing but the work itself takes time. */

const ARRIVALS = 200_000;

/**
 * Milliseconds from arrival to answer of Poisson arrivals, first come first served. `works`: milliseconds of one,
 * drawn at random.
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
