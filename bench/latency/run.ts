/** Latency: of one caller, and of Poisson arrivals at 70 % of capacity, beside the time of a bare run. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { runBare } from '../baseline/bare.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/** The barest server of the same bytes: what a caller waits for without any decision. */
async function startEcho(): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const child = fork(fileURLToPath(new URL('../shell/server.ts', import.meta.url)), ['echo'], { execArgv: [] });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

/** `--seconds N`, `--engines N`, `--tokens N`, `--choices N`, `--capacity N`: decisions a second, measured if it is not given. */
export async function run(options: Record<string, number>): Promise<void> {
  const { seconds = 15, engines = availableParallelism(), tokens = 58, choices = 8 } = options;
  const service = await startService({ UMPIRE_ENGINES: String(engines) });
  try {
    const plan = { port: service.port, protocol: 'rest', seconds, warmUp: 1, tokens, choices } as const;
    const bare = await runBare(1, seconds / 2, tokens);
    const echo = await startEcho();
    const hop = await runLoad({ ...plan, port: echo.port, seconds: seconds / 3, shape: { callers: 1 } });
    echo.child.disconnect();
    const one = await runLoad({ ...plan, shape: { callers: 1 } });
    const full = await runLoad({ ...plan, seconds: seconds / 2, shape: { callers: 16 } });
    const capacity = options.capacity ?? full.latencies.ok.length / full.seconds;
    const poisson = await runLoad({ ...plan, shape: { perSecond: 0.7 * capacity } });
    const crowd = await runBare(engines, seconds / 2, tokens);
    const time = median(bare.latencies);
    const busy = median(crowd.latencies);
    const row = (name: string, latencies: readonly number[], ratio: string, bound: string): readonly string[] => {
      return [name, quantile(latencies, 0.5).toFixed(2), quantile(latencies, 0.99).toFixed(2), ratio, bound];
    };
    const tail = quantile(poisson.latencies.ok, 0.99);
    printTable(
      [`${engines} engines, ${tokens} + 6 tokens, ${choices} choices`, 'p50 ms', 'p99 ms', 'against bare', 'at most'],
      [
        row('bare run, one process', bare.latencies, '', ''),
        row(`bare run, ${engines} processes`, crowd.latencies, '', ''),
        row('one caller, node:http JSON echo, no decision', hop.latencies.ok, '', ''),
        row(
          'one caller over REST',
          one.latencies.ok,
          `p50 +${(median(one.latencies.ok) - time).toFixed(2)} ms`,
          '+0.50 ms',
        ),
        row(
          `${(0.7 * capacity).toFixed(0)} arrivals/s over REST`,
          poisson.latencies.ok,
          `p99 ${(tail / busy).toFixed(2)} ×`,
          '5.00 ×',
        ),
      ],
    );
    console.log(
      `capacity ${capacity.toFixed(0)}/s; refused ${poisson.latencies.refused.length}, failed ${poisson.failed + one.failed}`,
    );
  } finally {
    await service.stop();
  }
}
