/**
 * A multinomial logistic regression that begins where the model stands:
 *
 *     z = a ln p + b + W (x - mean),   P = softmax(z)
 *
 * p are the model's probabilities and x its vector of the text. b and W are fitted, each pulled towards 0 (an L2
 * penalty), so that few examples change little and a choice without any is still decided by its name. a is given: if it
 * were fitted together with W, it would grow on what W has memorised. The loss of an example is -ln of its label's
 * probability or, where a model said what it is, the cross-entropy with that model's distribution.
 */
import { logOf } from '../engine/tempered.ts';
import { type LbfgsOptions, minimise } from './lbfgs.ts';
import { centredRows, timesTransposed, transposed } from './matrix.ts';

/** Scored examples, as columns: the numbers of one choice are contiguous. */
export interface RegressionData {
  readonly examples: number;
  readonly choices: number;
  /** The logarithms of the model's probabilities, [choices, examples]. */
  readonly logs: Float64Array;
  /** The place of each example's choice. */
  readonly labels: Int32Array;
  /** Undefined for a family without vectors. */
  readonly vectors: VectorData | undefined;
  /** What each example is, as distributions [choices, examples]; undefined if each is its label for certain. */
  readonly targets: Float64Array | undefined;
  /** How many examples each counts as in a fit. */
  readonly counts: Float64Array;
  /** The places of those by which fits are judged. */
  readonly judges: Int32Array;
  /** The places of those on which nothing may be worse; undefined if there are none. */
  readonly vetoes: Int32Array | undefined;
}

/** What is known of examples beyond labels: a value, or undefined, for each. */
export interface Circumstances {
  /** Distributions over the choices; an example without one is its label for certain. */
  readonly targets?: readonly (Float64Array | undefined)[];
  /** 1 for those without. */
  readonly counts?: readonly (number | undefined)[];
  /** Fits are judged by those with true; by all if there are none. */
  readonly judges?: readonly (boolean | undefined)[];
  /** Nothing may be worse on those with true. */
  readonly vetoes?: readonly (boolean | undefined)[];
}

/** The examples' vectors, centred. */
export interface VectorData {
  readonly width: number;
  readonly mean: Float64Array;
  /** The vectors less their mean [examples, width], and the transpose [width, examples]. */
  readonly centred: Float64Array;
  readonly columns: Float64Array;
}

/** What is given: a, and how strongly b and W are pulled towards 0; one without a pull is not fitted and stays 0. */
export interface Pulls {
  readonly scale: number;
  readonly bias?: number;
  readonly weights?: number;
}

/** After how many steps, or how small a gain, a fit ends. */
export type Effort = Pick<LbfgsOptions, 'mostSteps' | 'tolerance'>;

/** Parameters in one list: a, b, then W row by row where there are weights. */
export type Parameters = Float64Array;

/** The effort for the fit that is kept. */
const FINAL: Effort = { mostSteps: 40, tolerance: 1e-4 };
/** The effort for fits that only compare candidates. */
export const COMPARING: Effort = { mostSteps: 12, tolerance: 1e-3 };

/** Makes the data of a regression from what the model said of each example. */
export function regressionData(
  probabilities: readonly Float64Array[],
  labels: readonly number[],
  vectors?: readonly Float32Array[],
  { targets, counts, judges, vetoes }: Circumstances = {},
): RegressionData {
  const examples = probabilities.length;
  const choices = probabilities[0]?.length ?? 0;
  const logs = new Float64Array(choices * examples);
  for (const [i, each] of probabilities.entries()) {
    for (let k = 0; k < choices; k++) logs[k * examples + i] = logOf(each[k] as number);
  }
  const places = labels.map((_, i) => i);
  const [judging = [], vetoing = []] = [judges, vetoes].map((are) => places.filter((i) => are?.[i] === true));
  return {
    examples,
    choices,
    logs,
    labels: Int32Array.from(labels),
    vectors: vectors === undefined ? undefined : vectorData(vectors),
    targets: targets?.some((each) => each !== undefined) === true ? columnsOf(targets, labels, choices) : undefined,
    counts: Float64Array.from(labels, (_, i) => counts?.[i] ?? 1),
    judges: Int32Array.from(judging.length > 0 ? judging : places),
    vetoes: vetoing.length > 0 ? Int32Array.from(vetoing) : undefined,
  };
}

function columnsOf(targets: readonly (Float64Array | undefined)[], labels: readonly number[], choices: number) {
  const columns = new Float64Array(choices * labels.length);
  for (const [i, label] of labels.entries()) {
    for (let k = 0; k < choices; k++) columns[k * labels.length + i] = targets[i]?.[k] ?? (k === label ? 1 : 0);
  }
  return columns;
}

function vectorData(vectors: readonly Float32Array[]): VectorData {
  const width = vectors[0]?.length ?? 0;
  const examples = vectors.length;
  const rows = new Float64Array(examples * width);
  for (const [i, vector] of vectors.entries()) rows.set(vector, i * width);
  const { mean, centred } = centredRows(rows, width);
  return { width, mean, centred, columns: transposed(centred, examples, width) };
}

/** z of all examples [choices, examples]. */
export function logitsOf(data: RegressionData, at: Parameters): Float64Array {
  const { examples, choices, logs, vectors } = data;
  const z = new Float64Array(choices * examples);
  const scale = at[0] as number;
  const hasWeights = at.length > 1 + choices && vectors !== undefined;
  if (hasWeights) {
    const weights = at.subarray(1 + choices);
    timesTransposed(weights, vectors.centred, z, { rows: choices, columns: examples, inner: vectors.width });
  }
  for (let k = 0; k < choices; k++) {
    const bias = at[1 + k] as number;
    for (let i = k * examples; i < (k + 1) * examples; i++) {
      z[i] = (z[i] as number) + scale * (logs[i] as number) + bias;
    }
  }
  return z;
}

/** Replaces z by probabilities, example by example, and returns the loss of each example. */
export function toProbabilities({ examples, choices, labels, targets }: RegressionData, z: Float64Array): Float64Array {
  const highest = new Float64Array(examples).fill(Number.NEGATIVE_INFINITY);
  const sums = new Float64Array(examples);
  for (let k = 0, place = 0; k < choices; k++) {
    for (let i = 0; i < examples; i++, place++)
      if ((z[place] as number) > (highest[i] as number)) highest[i] = z[place] as number;
  }
  for (let k = 0, place = 0; k < choices; k++) {
    for (let i = 0; i < examples; i++, place++) {
      const weight = Math.exp((z[place] as number) - (highest[i] as number));
      z[place] = weight;
      sums[i] = (sums[i] as number) + weight;
    }
  }
  for (let k = 0, place = 0; k < choices; k++) {
    for (let i = 0; i < examples; i++, place++) z[place] = (z[place] as number) / (sums[i] as number);
  }
  if (targets === undefined) return Float64Array.from(labels, (label, i) => -logOf(z[label * examples + i] as number));
  const losses = new Float64Array(examples);
  for (let k = 0, place = 0; k < choices; k++) {
    for (let i = 0; i < examples; i++, place++) {
      const share = targets[place] as number;
      if (share > 0) losses[i] = (losses[i] as number) - share * logOf(z[place] as number);
    }
  }
  return losses;
}

/**
 * The parameters with the least loss and penalty over the examples with 1 in `taken`, and not 0. `from`: parameters to
 * begin at, which are not changed.
 */
export function fitParameters(
  data: RegressionData,
  taken: Int32Array,
  pulls: Pulls,
  effort: Effort = FINAL,
  from?: Parameters,
): Parameters {
  const { examples, choices, labels, vectors, targets } = data;
  const counts = data.counts.map((count, i) => count * (taken[i] as number));
  const width = pulls.weights === undefined ? 0 : (vectors?.width ?? 0);
  const at = new Float64Array(1 + choices + choices * width);
  if (from !== undefined) at.set(from.subarray(0, at.length));
  at[0] = pulls.scale;
  const rates = pullRates(data, pulls, at.length);
  const counted = counts.reduce((sum, count) => sum + count, 0);
  const residuals = new Float64Array(choices * examples);
  const weightGradient = new Float64Array(choices * width);

  const objective = (point: Float64Array, gradient: Float64Array): number => {
    const p = logitsOf(data, point);
    const losses = toProbabilities(data, p);
    let value = 0;
    for (let i = 0; i < examples; i++) value += (counts[i] as number) * (losses[i] as number);
    for (let k = 0, place = 0; k < choices; k++) {
      for (let i = 0; i < examples; i++, place++) {
        const target = targets === undefined ? (labels[i] === k ? 1 : 0) : (targets[place] as number);
        residuals[place] = (counts[i] as number) * ((p[place] as number) - target);
      }
    }
    gradient.fill(0);
    for (let k = 0, place = 0; k < choices; k++) {
      for (let i = 0; i < examples; i++, place++) {
        gradient[1 + k] = (gradient[1 + k] as number) + (residuals[place] as number);
      }
    }
    if (width > 0 && vectors !== undefined) {
      timesTransposed(residuals, vectors.columns, weightGradient, { rows: choices, columns: width, inner: examples });
      gradient.set(weightGradient, 1 + choices);
    }
    for (let j = 0; j < point.length; j++) {
      const rate = rates[j] as number;
      if (rate === Number.POSITIVE_INFINITY) {
        gradient[j] = 0;
        continue;
      }
      const parameter = point[j] as number;
      value += 0.5 * rate * parameter * parameter;
      gradient[j] = (gradient[j] as number) + rate * parameter;
    }
    return value;
  };

  minimise(objective, at, { curvature: curvatures(rates, counted, choices, width), ...effort });
  return at;
}

/** The pull of each parameter; infinite for one that stays as it is. */
function pullRates({ choices }: RegressionData, pulls: Pulls, length: number): Float64Array {
  const rates = new Float64Array(length).fill(pulls.weights ?? 0);
  rates[0] = Number.POSITIVE_INFINITY;
  return rates.fill(pulls.bias ?? Number.POSITIVE_INFINITY, 1, 1 + choices);
}

/** Rough second derivatives, for the optimiser alone. */
function curvatures(rates: Float64Array, examples: number, choices: number, width: number): Float64Array {
  const each = examples / choices;
  return rates.map((rate, j) => {
    if (rate === Number.POSITIVE_INFINITY) return 1;
    return rate + (j < 1 + choices ? each : each / width);
  });
}
