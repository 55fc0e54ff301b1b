/**
 * ONNX Runtime, as an engine process uses it: one thread, no spinning, memory given back. This is the only file that
 * imports it.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { env, InferenceSession, Tensor as RuntimeTensor } from 'onnxruntime-node';
import type { Graph, Tensor } from '../families/family.ts';
import { decodeWeights } from './load-family.ts';
import { release } from './release.ts';

const NOT_SPINNING = { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } };
const SESSION_OPTIONS: InferenceSession.SessionOptions = {
  executionProviders: ['cpu'],
  // Processes are the unit of parallelism: a second thread gains less than a second process, and spinning threads take
  // time from it.
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
  // The arena keeps the memory of the largest run for ever; without it a run costs the same.
  enableCpuMemArena: false,
  extra: { session: NOT_SPINNING },
  logSeverityLevel: 3,
};

/** The version of the runtime. */
export const RUNTIME_VERSION = env.versions.node ?? env.versions.common;

/** Smaller weights stay in the graph's own file. */
const LEAST_EXTERNAL = 1024;

/**
 * Loads a graph. `weights` are all files that the graph names as external data, if one of them is coded (`.bits`): its
 * data is what the file decodes to. `optimised`: a file in which the graph is saved as it is run here, with its
 * weights, packed, in another one of that name and `.data`. Rejects with the runtime's error if the file is not a graph
 * that it can run.
 */
export async function loadGraph(path: string, weights: readonly string[] = [], optimised?: string): Promise<Graph> {
  const options = optimised === undefined ? SESSION_OPTIONS : savingTo(optimised);
  return graphOf(
    await (weights.length === 0 ? InferenceSession.create(path, options) : createWithWeights(path, weights, options)),
  );
}

/** Loads a graph that `loadGraph` has saved. */
export async function loadOptimised(path: string): Promise<Graph> {
  return graphOf(await InferenceSession.create(path, { ...SESSION_OPTIONS, graphOptimizationLevel: 'disabled' }));
}

function savingTo(path: string): InferenceSession.SessionOptions {
  const session = {
    ...NOT_SPINNING,
    optimized_model_external_initializers_file_name: `${basename(path)}.data`,
    optimized_model_external_initializers_min_size_in_bytes: String(LEAST_EXTERNAL),
    save_external_prepacked_constant_initializers: '1',
  };
  return { ...SESSION_OPTIONS, optimizedModelFilePath: path, extra: { session } };
}

function graphOf(session: InferenceSession): Graph {
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

async function createWithWeights(
  path: string,
  weights: readonly string[],
  options: InferenceSession.SessionOptions,
): Promise<InferenceSession> {
  const externalData = [];
  for (const file of weights) {
    const content = await readFile(file);
    const isCoded = file.endsWith('.bits');
    externalData.push({ path: basename(file), data: isCoded ? decodeWeights(content) : content });
    if (isCoded) release(content);
  }
  try {
    return await InferenceSession.create(path, { ...options, externalData });
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
