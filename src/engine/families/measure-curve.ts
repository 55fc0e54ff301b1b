/** Measures what graph runs of several lengths take on one core of this machine. */
import type { CostCurve } from '../cost-profile.ts';

/** Measures a curve: runs `work` at each size after one unmeasured run and keeps the least CPU time of two. */
export async function measureCurve(
  sizes: readonly number[],
  work: (tokens: number) => Promise<unknown>,
): Promise<CostCurve> {
  const points: [number, number][] = [];
  const distinct = [...new Set(sizes)].sort((a, b) => a - b);
  await work(distinct[0] ?? 1);
  for (const tokens of distinct) {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 2; round++) {
      // CPU time and not the clock: a machine that is busy while a model loads must not make the model look slow.
      const before = process.cpuUsage();
      await work(tokens);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    points.push([tokens, least]);
  }
  return points;
}
