/**
 * A models folder with a stand-in for minilm-l6: its name, its tokenizer and its limits, so requests and counts of
 * tokens are the real ones, with a graph that costs nothing. For tests of everything but what the model says: the real
 * one takes a second of a core at every start.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onnxModel } from '../engine/support/onnx.ts';
import { listed } from '../engine/support/packages.ts';
import { temporaryFolder } from './temporary-folder.ts';

const SHIPPED = fileURLToPath(new URL('../../models/minilm-l6/r2', import.meta.url));
/** Its own, so that tests need not follow the shipped package's. */
const REVISION = 'r1';
const WIDTH = 64;

/**
 * The mean of its tokens' vectors, normalised; a token's are sines of multiples of its id. Texts are near to each other
 * by the words that they share.
 */
function graphOf(): Uint8Array {
  return onnxModel({
    constants: [
      { name: 'last', dims: [1], values: BigInt64Array.of(2n) },
      { name: 'factors', dims: [WIDTH], values: Float32Array.from({ length: WIDTH }, (_, i) => 1 + ((i * 1.854) % 3)) },
    ],
    operators: [
      { type: 'Cast', inputs: ['input_ids'], output: 'ids', attributes: { to: 1 } },
      { type: 'Unsqueeze', inputs: ['ids', 'last'], output: 'columns' },
      { type: 'Mul', inputs: ['columns', 'factors'], output: 'multiples' },
      { type: 'Sin', inputs: ['multiples'], output: 'tokens' },
      { type: 'ReduceMean', inputs: ['tokens'], output: 'mean', attributes: { axes: [1], keepdims: 0 } },
      { type: 'LpNormalization', inputs: ['mean'], output: 'embedding', attributes: { axis: 1, p: 2 } },
    ],
    output: { name: 'embedding', width: WIDTH },
  });
}

/** The folder. */
export function lightModel(): string {
  const models = temporaryFolder();
  const folder = join(models, 'minilm-l6', REVISION);
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(SHIPPED, 'tokenizer.json'), join(folder, 'tokenizer.json'));
  const graph = graphOf();
  writeFileSync(join(folder, 'model.onnx'), graph);
  const shipped = JSON.parse(readFileSync(join(SHIPPED, 'model.json'), 'utf8'));
  const manifest = {
    ...shipped,
    revision: REVISION,
    files: { ...shipped.files, 'model.onnx': listed(graph) },
    canary: { input: 'billing', instruction: 'billing', choices: ['billing', 'shipping'], choice: 'billing' },
  };
  writeFileSync(join(folder, 'model.json'), JSON.stringify(manifest));
  return models;
}
