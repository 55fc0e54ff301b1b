/**
 * The barest use of the runtime: a loop over `session.run` with the same graph and the same sequences as a decision of the shipped model, no
 * text, no queue, no answer. `node bench/baseline/bare-loop.ts <model folder> <seconds> <tokens of each run>…` sends a BareResult to its parent.
 */
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/** What a loop came to. */
export interface BareResult {
  readonly decisions: number;
  readonly seconds: number;
  /** CPU seconds of the process. */
  readonly cpu: number;
  /** Milliseconds of each decision. */
  readonly latencies: readonly number[];
}

const [folder = '', seconds = '1', ...runs] = process.argv.slice(2);
const session = await InferenceSession.create(join(folder, 'model.onnx'), {
  executionProviders: ['cpu'],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
});
const feeds = runs.map((tokens) => {
  const ids = BigInt64Array.from({ length: Number(tokens) }, (_, i) => BigInt(2000 + ((i * 37) % 5000)));
  return { input_ids: new Tensor('int64', ids, [1, ids.length]) };
});
const decide = async (): Promise<void> => {
  for (const feed of feeds) await session.run(feed);
};

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
