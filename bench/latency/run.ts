/** Latency of one caller, and of Poisson arrivals at 70 % of capacity, compared with the time of a bare run. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { packageFolder, runBare, sequencesOf } from '../baseline/bare.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/** Starts the smallest server that runs the graph in another process: see nearest-server.ts. */
async function startNearest(tokens: number): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const args = [packageFolder, ...sequencesOf(tokens).map(String)];
  const child = fork(fileURLToPath(new URL('./nearest-server.ts', import.meta.url)), args, { execArgv: [] });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

/**
 * Rounds of all measurements. In each the tail is compared with the bare runs just before and after it, since the
 * machine's speed changes from minute to minute.
 */
const ROUNDS = 5;

const none = (): number[] => [];

/** The rate of the arrivals, as a share of the capacity. */
const SHARE = 0.7;

/**
 * Runs the benchmark and prints its table. `--seconds N` of arrivals in each round; `--engines N`, `--tokens N`,
 * `--choices N`; `--capacity N` in decisions per second, which is measured if it is not given.
 */
export async function run(options: Record<string, number>): Promise<void> {
  const { seconds = 10, engines = availableParallelism(), tokens = 58, choices = 8 } = options;
  const service = await startService({ UMPIRE_ENGINES: String(engines) });
  const nearest = await startNearest(tokens);
  try {
    const plan = { port: service.port, protocol: 'rest', seconds, warmUp: 1, tokens, choices } as const;
    const part = seconds / 3;
    const alone = { ...plan, seconds: part, shape: { callers: 1 } };
    const times = { bare: none(), nearest: none(), one: none(), crowd: none(), poisson: none() };
    const capacities: number[] = [];
    const tails: number[] = [];
    const ideal: number[] = [];
    const trouble = { refused: 0, failed: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      times.bare.push(...(await runBare(1, part, tokens)).latencies);
      times.nearest.push(...(await runLoad({ ...alone, port: nearest.port })).latencies.ok);
      times.one.push(...(await runLoad(alone)).latencies.ok);
      const full = await runLoad({ ...plan, seconds: part, shape: { callers: 16 } });
      const capacity = options.capacity ?? full.latencies.ok.length / full.seconds;
      const before = await runBare(engines, part, tokens);
      const logged = service.log().length;
      const poisson = await runLoad({ ...plan, shape: { perSecond: SHARE * capacity } });
      const works = service
        .log()
        .slice(logged)
        .flatMap(({ timings }) => (timings ? [timings.tokenize + timings.infer] : []));
      const after = await runBare(engines, part, tokens);
      const crowd = [...before.latencies, ...after.latencies];
      capacities.push(capacity);
      tails.push(quantile(poisson.latencies.ok, 0.99) / median(crowd));
      ideal.push(
        quantile(idealQueue(engines, works, poisson.latencies.ok.length / poisson.seconds), 0.99) / median(crowd),
      );
      times.crowd.push(...crowd);
      times.poisson.push(...poisson.latencies.ok);
      trouble.refused += poisson.latencies.refused.length;
      trouble.failed += poisson.failed;
    }
    const time = median(times.bare);
    const over = (latencies: readonly number[]): string => `p50 +${(median(latencies) - time).toFixed(2)} ms`;
    const row = (name: string, latencies: readonly number[], ratio: string, bound: string): readonly string[] => {
      return [name, quantile(latencies, 0.5).toFixed(2), quantile(latencies, 0.99).toFixed(2), ratio, bound];
    };
    printTable(
      [`${engines} engines, ${tokens} + 6 tokens, ${choices} choices`, 'p50 ms', 'p99 ms', 'against bare', 'at most'],
      [
        row('bare run, one process', times.bare, '', ''),
        row(`bare run, ${engines} processes`, times.crowd, '', ''),
        row('one caller, bare run behind node:http and fork', times.nearest, over(times.nearest), ''),
        row('one caller over REST', times.one, over(times.one), '+0.50 ms'),
        row(
          `${(SHARE * median(capacities)).toFixed(0)} arrivals/s over REST`,
          times.poisson,
          `p99 ${median(tails).toFixed(2)} ×`,
          '5.00 ×',
        ),
      ],
    );
    const each = (ratios: readonly number[]): string => ratios.map((ratio) => ratio.toFixed(2)).join(', ');
    console.log(
      `p99 of each round against its bare runs: ${each(tails)}; of an ideal queue with the same work: ${each(ideal)}
capacity ${median(capacities).toFixed(0)}/s; refused ${trouble.refused}, failed ${trouble.failed}`,
    );
  } finally {
    nearest.child.disconnect();
    await service.stop();
  }
}

/** Arrivals that are simulated. */
const ARRIVALS = 200_000;

/**
 * Simulates a queue before servers in which only the work takes time, the tail that no implementation can avoid:
 * milliseconds from arrival to answer of Poisson arrivals that are served in their order. `works`: milliseconds of
 * work, from which that of each arrival is drawn at random.
 */
function idealQueue(servers: number, works: readonly number[], perSecond: number): readonly number[] {
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
