/**
 * The barest use of the runtime: a loop over `session.run`. Run as
 * `node bench/baseline/bare-loop.ts <model folder> <seconds> <tokens of each run>…`, it sends its parent a BareResult.
 */
import { loadBareModel } from './bare-model.ts';

/** The result of a loop. */
export interface BareResult {
  readonly decisions: number;
  readonly seconds: number;
  /** CPU seconds of the process. */
  readonly cpu: number;
  /** Milliseconds of each decision. */
  readonly latencies: readonly number[];
}

const [folder = '', seconds = '1', ...runs] = process.argv.slice(2);
const decide = await loadBareModel(folder, runs.map(Number));

for (let i = 0; i < 20; i++) await decide();
process.send?.('ready');
process.once('message', async () => {
  const latencies: number[] = [];
  const cpu = process.cpuUsage();
  const began = performance.now();
  const end = began + Number(seconds) * 1000;
  for (let now = began; now < end; ) {
    await decide();
    const done = performance.now();
    latencies.push(done - now);
    now = done;
  }
  const { user, system } = process.cpuUsage(cpu);
  const result: BareResult = {
    decisions: latencies.length,
    seconds: (performance.now() - began) / 1000,
    cpu: (user + system) / 1e6,
    latencies,
  };
  process.send?.(result, undefined, undefined, () => process.exit(0));
});
