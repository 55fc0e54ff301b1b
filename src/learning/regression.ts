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
  /** What each example is, as distributions [choices, examples]. */
  readonly targets: Float64Array;
  /** Whether a model said what some of them are. */
  readonly taught: boolean;
  /** How many examples each counts as in a fit. */
  readonly counts: Float64Array;
  /** The places of those by which fits are judged. */
  readonly judges: Int32Array;
  /** The places of those on which nothing may be worse; undefined if there are none. */
  readonly vetoes: Int32Array | undefined;
}

/** What the model said of an example, by choices in code-unit order, and the place of its label. */
export interface ScoredExample {
  readonly probabilities: Float64Array;
  readonly vector: Float32Array | undefined;
  readonly label: number;
  /** What a model said that the text is, over the choices, where that is why it has its label. */
  readonly said?: Float64Array | undefined;
  /** How many examples it counts as; 1 if undefined. */
  readonly counts?: number | undefined;
  /** Whether what is learned is judged by it. If none has true, all judge. */
  readonly judges?: boolean | undefined;
  /** Whether nothing may be worse on it. Where some have true, all figures and the temperature are of those alone. */
  readonly vetoes?: boolean | undefined;
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

/** Makes the data of a regression. Vectors count only if all examples have one. */
export function regressionData(examples: readonly ScoredExample[]): RegressionData {
  const choices = examples[0]?.probabilities.length ?? 0;
  const logs = new Float64Array(choices * examples.length);
  const targets = new Float64Array(choices * examples.length);
  for (const [i, { probabilities, label, said }] of examples.entries()) {
    for (let k = 0; k < choices; k++) {
      logs[k * examples.length + i] = logOf(probabilities[k] as number);
      targets[k * examples.length + i] = said === undefined ? Number(k === label) : (said[k] as number);
    }
  }
  const vectors = examples.flatMap(({ vector }) => vector ?? []);
  const placesOf = (is: (example: ScoredExample) => boolean | undefined) =>
    Int32Array.from([...examples.keys()].filter((i) => is(examples[i] as ScoredExample) === true));
  const judges = placesOf((example) => example.judges);
  const vetoes = placesOf((example) => example.vetoes);
  return {
    examples: examples.length,
    choices,
    logs,
    labels: Int32Array.from(examples, ({ label }) => label),
    vectors: vectors.length === examples.length ? vectorData(vectors) : undefined,
    targets,
    taught: examples.some(({ said }) => said !== undefined),
    counts: Float64Array.from(examples, ({ counts = 1 }) => counts),
    judges: judges.length > 0 ? judges : placesOf(() => true),
    vetoes: vetoes.length > 0 ? vetoes : undefined,
  };
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
export function toProbabilities({ examples, choices, targets }: RegressionData, z: Float64Array): Float64Array {
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
  const { examples, choices, vectors, targets } = data;
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
        residuals[place] = (counts[i] as number) * ((p[place] as number) - (targets[place] as number));
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
