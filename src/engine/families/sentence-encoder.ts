/**
 * Makes one vector of a sequence of tokens, by a graph as sentence encoders are exported: with or without a mask, with
 * a pooled vector or one for each token.
 */
import { messageOf } from '../errors.ts';
import { InvalidOptions } from '../packages/manifest.ts';
import type { Graph, RunControl, Tensor } from './family.ts';
import { normalised } from './vectors.ts';

/**
 * How a vector is made of a graph's output: `none` takes it as it is, `mean` takes the mean over all tokens, `cls` the
 * first token's.
 */
export type Pooling = 'none' | 'mean' | 'cls';

/** Which output of a graph is read, and how. */
export interface EncoderOutput {
  readonly pooling: Pooling;
  readonly output: string;
  readonly normalise: boolean;
}

/** The vector of a sequence. Throws JobStopped. */
export type SentenceEncoder = (ids: BigInt64Array, control: Pick<RunControl, 'checkpoint'>) => Promise<Float32Array>;

/** What each input holds. A run has one sequence, so nothing is masked. */
const INPUTS: Readonly<Record<string, (ids: BigInt64Array, typesFrom: number) => BigInt64Array>> = {
  input_ids: (ids) => ids,
  attention_mask: ({ length }) => new BigInt64Array(length).fill(1n),
  token_type_ids: ({ length }, typesFrom) => new BigInt64Array(length).fill(1n, typesFrom),
  position_ids: ({ length }) => BigInt64Array.from({ length }, (_, place) => BigInt(place)),
};

/**
 * The inputs of a run over one sequence, of which token type 1 begins at `typesFrom`, if anywhere. Throws Error if the
 * graph has an input that is not known.
 */
export function feedsOf(graph: Graph, ids: BigInt64Array, typesFrom = ids.length): Readonly<Record<string, Tensor>> {
  const feeds: Record<string, Tensor> = {};
  for (const name of graph.inputs) {
    const values = INPUTS[name];
    if (values === undefined) throw new Error(`the graph has an input "${name}", which this family does not know`);
    feeds[name] = { data: values(ids, typesFrom), dims: [1, ids.length] };
  }
  return feeds;
}

/** An encoder over a graph. Throws InvalidOptions if the graph has other inputs or lacks this output. */
export function createSentenceEncoder(graph: Graph, { pooling, output, normalise }: EncoderOutput): SentenceEncoder {
  const problems = [
    ...graph.inputs
      .filter((name) => INPUTS[name] === undefined)
      .map((name) => `the graph has an input "${name}"; this family knows ${Object.keys(INPUTS).join(', ')}`),
    ...(graph.inputs.includes('input_ids') ? [] : ['the graph has no input "input_ids"']),
    ...(graph.outputs.includes(output)
      ? []
      : [
          `the graph has no output "${output}", but ${graph.outputs.map((name) => `"${name}"`).join(', ')}; ` +
            'options.output names it, and options.pooling says whether it is a vector for each token',
        ]),
  ];
  if (problems.length > 0) throw new InvalidOptions(problems);

  return async (ids, control) => {
    control.checkpoint();
    const found = (await graph.run(feedsOf(graph, ids)))[output];
    if (!(found?.data instanceof Float32Array)) throw new Error(`the graph's output "${output}" is not float32`);
    const vector = pooled(found.data, found.dims, pooling, ids.length);
    if (!normalise) return vector;
    const unit = normalised(Float64Array.from(vector));
    if (unit === undefined) throw new Error(`the graph's output "${output}" has no direction`);
    return unit;
  };
}

function pooled(data: Float32Array, dims: readonly number[], pooling: Pooling, tokens: number): Float32Array {
  if (pooling === 'none') {
    if (dims.length === 2 && dims[0] === 1) return data;
    throw new Error(
      `the graph's output has the shape [${dims}], not [1, width]: options.pooling says how it is pooled`,
    );
  }
  const width = dims[2] ?? 0;
  if (dims.length !== 3 || dims[0] !== 1 || dims[1] !== tokens || width === 0)
    throw new Error(`the graph's output has the shape [${dims}], not [1, ${tokens}, width]: it cannot be pooled`);
  if (pooling === 'cls') return data.slice(0, width);
  const sum = new Float64Array(width);
  for (let place = 0; place < data.length; place++) {
    const column = place % width;
    sum[column] = (sum[column] as number) + (data[place] as number);
  }
  return Float32Array.from(sum, (value) => value / tokens);
}

// Finds limits that are above what a graph can read, and says how much it can: the runtime's own message names some
// operator inside.

/** A limit of a package; `beside` are the tokens that the longest run has in addition: special ones, a hypothesis. */
export interface LengthLimit {
  readonly limit: string;
  readonly tokens: number;
  readonly beside: number;
}

/**
 * Tries the longest runs. `run` takes a sequence of this many tokens and adds `own` to them. Throws InvalidOptions for
 * limits that the graph fails at.
 */
export async function checkLength(
  run: (tokens: number) => Promise<unknown>,
  own: number,
  limits: readonly LengthLimit[],
): Promise<void> {
  const problems: string[] = [];
  for (const { limit, tokens, beside } of limits) {
    const extra = beside - own;
    const failure = await failureOf(run, tokens + extra);
    if (failure === undefined) continue;
    let [most, least] = [tokens + extra, 0];
    while (most - least > 1) {
      const middle = (most + least) >> 1;
      if ((await failureOf(run, middle)) === undefined) least = middle;
      else most = middle;
    }
    problems.push(
      least === 0
        ? `the graph cannot be run: ${failure}`
        : `${limit} is ${tokens}, but the graph reads at most ${least + own} tokens, ${beside} of which are not the text's: lower it to ${least - extra}`,
    );
  }
  if (problems.length > 0) throw new InvalidOptions([...new Set(problems)]);
}

async function failureOf(run: (tokens: number) => Promise<unknown>, tokens: number): Promise<string | undefined> {
  try {
    await run(tokens);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
