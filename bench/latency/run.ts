/** Latency: of one caller, and of Poisson arrivals at 70 % of capacity, beside the time of a bare run. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { packageFolder, runBare, sequencesOf } from '../baseline/bare.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/** The least that answers with a run made in another process: see nearest-server.ts. */
async function startNearest(tokens: number): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const args = [packageFolder, ...sequencesOf(tokens).map(String)];
  const child = fork(fileURLToPath(new URL('./nearest-server.ts', import.meta.url)), args, { execArgv: [] });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

/** Rounds in which one caller and its baselines take turns. */
const ROUNDS = 4;

/** `--seconds N`, `--engines N`, `--tokens N`, `--choices N`, `--capacity N`: decisions a second, measured if it is not given. */
export async function run(options: Record<string, number>): Promise<void> {
  const { seconds = 15, engines = availableParallelism(), tokens = 58, choices = 8 } = options;
  const service = await startService({ UMPIRE_ENGINES: String(engines) });
  try {
    const plan = { port: service.port, protocol: 'rest', seconds, warmUp: 1, tokens, choices } as const;
    const nearest = await startNearest(tokens);
    const alone = { ...plan, seconds: seconds / ROUNDS, shape: { callers: 1 } };
    const times: Record<'bare' | 'nearest' | 'one', number[]> = { bare: [], nearest: [], one: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      times.bare.push(...(await runBare(1, seconds / ROUNDS, tokens)).latencies);
      times.nearest.push(...(await runLoad({ ...alone, port: nearest.port })).latencies.ok);
      times.one.push(...(await runLoad(alone)).latencies.ok);
    }
    nearest.child.disconnect();
    const full = await runLoad({ ...plan, seconds: seconds / 2, shape: { callers: 16 } });
    const capacity = options.capacity ?? full.latencies.ok.length / full.seconds;
    const poisson = await runLoad({ ...plan, shape: { perSecond: 0.7 * capacity } });
    const crowd = await runBare(engines, seconds / 2, tokens);
    const time = median(times.bare);
    const over = (latencies: readonly number[]): string => `p50 +${(median(latencies) - time).toFixed(2)} ms`;
    const busy = median(crowd.latencies);
    const row = (name: string, latencies: readonly number[], ratio: string, bound: string): readonly string[] => {
      return [name, quantile(latencies, 0.5).toFixed(2), quantile(latencies, 0.99).toFixed(2), ratio, bound];
    };
    const tail = quantile(poisson.latencies.ok, 0.99);
    printTable(
      [`${engines} engines, ${tokens} + 6 tokens, ${choices} choices`, 'p50 ms', 'p99 ms', 'against bare', 'at most'],
      [
        row('bare run, one process', times.bare, '', ''),
        row(`bare run, ${engines} processes`, crowd.latencies, '', ''),
        row('one caller, bare run behind node:http and fork', times.nearest, over(times.nearest), ''),
        row('one caller over REST', times.one, over(times.one), '+0.50 ms'),
        row(
          `${(0.7 * capacity).toFixed(0)} arrivals/s over REST`,
          poisson.latencies.ok,
          `p99 ${(tail / busy).toFixed(2)} ×`,
          '5.00 ×',
        ),
      ],
    );
    console.log(
      `capacity ${capacity.toFixed(0)}/s; refused ${poisson.latencies.refused.length}, failed ${poisson.failed}`,
    );
  } finally {
    await service.stop();
  }
}
