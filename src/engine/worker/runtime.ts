/**
 * ONNX Runtime, as an engine process uses it: one thread, no spinning, memory given back. This is the only file that
 * imports it.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { InferenceSession, Tensor as RuntimeTensor } from 'onnxruntime-node';
import type { Graph, Tensor } from '../families/family.ts';
import { decodeWeights } from './load-family.ts';
import { release } from './release.ts';

const SESSION_OPTIONS: InferenceSession.SessionOptions = {
  executionProviders: ['cpu'],
  // Processes are the unit of parallelism: a second thread gains less than a second process, and spinning threads take
  // time from it.
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
  // The arena keeps the memory of the largest run for ever; without it a run costs the same.
  enableCpuMemArena: false,
  extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
  logSeverityLevel: 3,
};

/**
 * Loads a graph. `weights` are all files that the graph names as external data, if one of them is coded (`.bits`): its
 * data is what the file decodes to. Rejects with the runtime's error if the file is not a graph that it can run.
 */
export async function loadGraph(path: string, weights: readonly string[] = []): Promise<Graph> {
  const session = await (weights.length === 0
    ? InferenceSession.create(path, SESSION_OPTIONS)
    : createWithWeights(path, weights));
  return {
    inputs: session.inputNames,
    outputs: session.outputNames,
    async run(feeds) {
      const tensors: Record<string, RuntimeTensor> = {};
      for (const [name, { data, dims }] of Object.entries(feeds)) tensors[name] = tensorOf(data, dims);
      const found = await session.run(tensors);
      const outputs: Record<string, Tensor> = {};
      for (const [name, { data, dims }] of Object.entries(found)) {
        // Copied: the runtime's own memory must not be held by a cache.
        outputs[name] = { data: (data as Tensor['data']).slice(), dims };
      }
      return outputs;
    },
    dispose: () => session.release(),
  };
}

async function createWithWeights(path: string, weights: readonly string[]): Promise<InferenceSession> {
  const externalData = [];
  for (const file of weights) {
    const content = await readFile(file);
    const isCoded = file.endsWith('.bits');
    externalData.push({ path: basename(file), data: isCoded ? decodeWeights(content) : content });
    if (isCoded) release(content);
  }
  try {
    return await InferenceSession.create(path, { ...SESSION_OPTIONS, externalData });
  } finally {
    // The runtime has its own copy by now.
    for (const { data } of externalData) release(data);
  }
}

function tensorOf(data: Tensor['data'], dims: readonly number[]): RuntimeTensor {
  return data instanceof BigInt64Array
    ? new RuntimeTensor('int64', data, dims)
    : new RuntimeTensor('float32', data, dims);
}
