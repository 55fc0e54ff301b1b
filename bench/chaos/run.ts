/** Chaos: an engine process is killed every second while callers go on asking. */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/**
 * Runs the benchmark and prints its table. `--seconds N`, `--engines N`, `--callers N`, `--model NAME`, `--models
 * FOLDER`.
 */
export async function run(
  options: Record<string, number>,
  { model, models }: Record<string, string> = {},
): Promise<void> {
  const { seconds = 60, engines = availableParallelism(), callers = 16 } = options;
  const service = await startService({
    UMPIRE_ENGINES: String(engines),
    ...(models === undefined ? {} : { UMPIRE_MODELS_DIR: resolve(models) }),
  });
  try {
    const plan = { port: service.port, protocol: 'rest', warmUp: 0, tokens: 58, choices: 8, model } as const;
    const calm = await runLoad({ ...plan, seconds: 5, shape: { callers } });
    const loading = runLoad({ ...plan, seconds, shape: { callers } });
    let kills = 0;
    const killing = setInterval(() => {
      const pids = service.engines();
      const victim = pids[kills % Math.max(1, pids.length)];
      if (victim === undefined) return;
      process.kill(victim, 'SIGKILL');
      kills++;
    }, 1000);
    const storm = await loading;
    clearInterval(killing);
    const since = performance.now();
    while (!(await fetch(`http://127.0.0.1:${service.port}/health/ready`)).ok || service.engines().length < engines) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const back = performance.now() - since;
    const after = await runLoad({ ...plan, warmUp: 3, seconds: 5, shape: { callers } });
    const row = (name: string, { latencies, failed, seconds: counted }: typeof storm): readonly string[] => [
      name,
      (latencies.ok.length / counted).toFixed(0),
      String(latencies.refused.length),
      String(failed),
      quantile(latencies.ok, 0.99).toFixed(0),
      Math.max(...latencies.ok).toFixed(0),
    ];
    printTable(
      ['', 'decisions/s', 'refused', 'failed', 'p99 ms', 'longest ms'],
      [row('before', calm), row(`${kills} engines killed in ${seconds} s`, storm), row('after', after)],
    );
    console.log(`ready again with all engines ${back.toFixed(0)} ms after the last second of chaos`);
  } finally {
    await service.stop();
  }
}
