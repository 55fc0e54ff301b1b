/** Chaos: an engine process, or also a step of a cascade, is killed every second while callers go on asking. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { remotePackage, writePackage } from '../cascade/packages.ts';
import { startSimulatedLlm } from '../cascade/simulated-llm.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

const SMALL = 'umpire-mini';
const SHIPPED = fileURLToPath(new URL(`../../models/${SMALL}`, import.meta.url));

/**
 * Runs the benchmark and prints its table. `--seconds N`, `--engines N`, `--callers N`, `--model NAME`, `--models
 * FOLDER`; `--if-away answer|refuse`: a cascade of umpire-mini and a simulated language model, whose server goes away
 * every other second.
 */
export async function run(options: Record<string, number>, words: Record<string, string> = {}): Promise<void> {
  if (words['if-away'] === undefined) return await storm(options, words);
  const start = (port?: number) => startSimulatedLlm(() => undefined, port);
  let llm = await start();
  const models = mkdtempSync(join(tmpdir(), 'umpire-bench-models-'));
  try {
    symlinkSync(SHIPPED, join(models, SMALL));
    await writePackage(models, 'right-90', remotePackage(llm.port, 'right-90'));
    const steps = [{ model: SMALL, sure: 0.9 }, { model: 'right-90' }];
    await writePackage(models, 'careful', { family: 'cascade', options: { steps, if_away: words['if-away'] } });
    let isThere = true;
    await storm(options, { model: 'careful', models }, async (isOver) => {
      if (!isThere) llm = await start(llm.port);
      else if (!isOver) await llm.stop();
      isThere = isOver || !isThere;
    });
  } finally {
    await llm.stop();
    rmSync(models, { recursive: true });
  }
}

/** `trouble`: what else happens every second, and when it is over. */
async function storm(
  options: Record<string, number>,
  { model, models }: Record<string, string>,
  trouble = async (_isOver: boolean): Promise<void> => {},
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
    let troubled = Promise.resolve();
    const killing = setInterval(() => {
      troubled = troubled.then(() => trouble(false));
      const pids = service.engines();
      const victim = pids[kills % Math.max(1, pids.length)];
      if (victim === undefined) return;
      process.kill(victim, 'SIGKILL');
      kills++;
    }, 1000);
    const stormy = await loading;
    clearInterval(killing);
    await troubled;
    await trouble(true);
    const since = performance.now();
    while (!(await fetch(`http://127.0.0.1:${service.port}/health/ready`)).ok || service.engines().length < engines) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const back = performance.now() - since;
    const after = await runLoad({ ...plan, warmUp: 3, seconds: 5, shape: { callers } });
    const row = (name: string, { latencies, failed, seconds: counted }: typeof stormy): readonly string[] => [
      name,
      (latencies.ok.length / counted).toFixed(0),
      String(latencies.refused.length),
      String(failed),
      quantile(latencies.ok, 0.99).toFixed(0),
      Math.max(...latencies.ok).toFixed(0),
    ];
    printTable(
      ['', 'decisions/s', 'refused', 'failed', 'p99 ms', 'longest ms'],
      [row('before', calm), row(`${kills} engines killed in ${seconds} s`, stormy), row('after', after)],
    );
    console.log(`ready again with all engines ${back.toFixed(0)} ms after the last second of chaos`);
  } finally {
    await service.stop();
  }
}
