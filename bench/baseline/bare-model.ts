/**
 * The shipped model with nothing around it: the same graph and sequences of the same length as in a decision, without
 * text, queue or answer.
 */
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/** A function that makes the graph runs of one decision. */
export type BareModel = () => Promise<void>;

/** Loads the model of a package folder. `runs`: the number of tokens of each graph run of a decision. */
export async function loadBareModel(folder: string, runs: readonly number[]): Promise<BareModel> {
  const session = await InferenceSession.create(join(folder, 'model.onnx'), {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
  });
  const feeds = runs.map((tokens) => {
    const ids = BigInt64Array.from({ length: tokens }, (_, i) => BigInt(2000 + ((i * 37) % 5000)));
    return { input_ids: new Tensor('int64', ids, [1, ids.length]) };
  });
  return async () => {
    for (const feed of feeds) await session.run(feed);
  };
}
