/** The shipped sentence encoder against vectors that PyTorch computed with its weights in full precision. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { dot } from '../../../src/engine/families/vectors.ts';
import { loadTokenizer } from '../../../src/engine/text/tokenizer.ts';
import { loadGraph } from '../../../src/engine/worker/runtime.ts';
import { shippedModels } from '../support/engine.ts';

interface Golden {
  readonly min_cosine: number;
  readonly texts: readonly {
    readonly text: string;
    readonly ids: readonly number[];
    readonly vector: readonly number[];
  }[];
}

const packageFolder = join(shippedModels, 'minilm-l6', 'r2');

test('the tokens are the same and the vectors agree within the stated tolerance', async (t) => {
  const golden = new URL('../../golden/minilm-l6/vectors.json', import.meta.url);
  const { texts, min_cosine: least }: Golden = JSON.parse(await readFile(golden, 'utf8'));
  const tokenizer = await loadTokenizer(join(packageFolder, 'tokenizer.json'));
  const graph = await loadGraph(join(packageFolder, 'model.onnx'));
  t.true(texts.length > 10);
  for (const { text, ids, vector } of texts) {
    t.deepEqual([101, ...tokenizer.ids(text), 102], ids, text);
    const { embedding } = await graph.run({
      input_ids: { data: BigInt64Array.from(ids, BigInt), dims: [1, ids.length] },
    });
    const cosine = dot(embedding?.data as Float32Array, Float32Array.from(vector));
    t.true(cosine >= least, `${cosine}: ${text}`);
  }
  await graph.dispose();
});
