/**
 * A linear map of vectors that brings out what tells choices apart. Weights that are fitted to mapped vectors with one
 * pull for all are held more along directions in which the examples of a choice differ from each other, and less along
 * those in which choices do. It is the prior of a two-covariance model (PLDA: Ioffe, Probabilistic Linear Discriminant
 * Analysis, 2006): with the spread within choices S and that of their means T, weights are as likely as a normal
 * distribution of covariance S⁻¹ T S⁻¹ says.
 */
import { cholesky, inverseOfLower, timesTransposed, transposed } from './matrix.ts';
import type { Parameters, RegressionData, VectorData } from './regression.ts';

/** A mean variance below this is rounding: vectors have length 1. */
const NO_SPREAD = 1e-12;

/** Data whose vectors are mapped, and the map [width, width]. */
export interface Contrasted {
  readonly data: RegressionData;
  readonly map: Float64Array;
}

/** Maps the vectors of all examples by what those that `counts` (1 or 0 each) tell. Needs vectors. */
export function contrasted(data: RegressionData, counts: Int32Array): Contrasted {
  const vectors = data.vectors as VectorData;
  const { width, mean, centred } = vectors;
  const { means, deviations, freedom } = withinChoices(data, vectors, counts);
  // Behind the first half, the examples of a choice differ as much in all directions.
  const even = inverseOfLower(cholesky(shrunkSpread(deviations, freedom, width), width), width);
  const choices = means.length / width;
  const evenMeans = product(lessTheirMean(means, width), even, { rows: choices, columns: width, inner: width });
  const between = cholesky(shrunkSpread(evenMeans, choices - 1, width), width);
  const square = { rows: width, columns: width, inner: width };
  const map = product(transposed(between, width, width), transposed(even, width, width), square);
  const rows = product(centred, map, { rows: data.examples, columns: width, inner: width });
  const mapped = { width, mean, centred: rows, columns: transposed(rows, data.examples, width) };
  return { data: { ...data, vectors: mapped }, map };
}

/** Parameters for the vectors as they are, of parameters for mapped ones. */
export function beforeMap({ data: { choices, vectors }, map }: Contrasted, at: Parameters): Parameters {
  const { width } = vectors as VectorData;
  const weights = product(at.subarray(1 + choices), transposed(map, width, width), {
    rows: choices,
    columns: width,
    inner: width,
  });
  const parameters = at.slice();
  parameters.set(weights, 1 + choices);
  return parameters;
}

/** The means of choices with examples, the deviations from them, and how many of these are free (n - choices). */
function withinChoices({ choices, labels }: RegressionData, { width, centred }: VectorData, counts: Int32Array) {
  const numbers = new Float64Array(choices);
  const sums = new Float64Array(choices * width);
  for (const [i, label] of labels.entries()) {
    if (counts[i] !== 1) continue;
    numbers[label] = (numbers[label] as number) + 1;
    for (let j = 0; j < width; j++)
      sums[label * width + j] = (sums[label * width + j] as number) + (centred[i * width + j] as number);
  }
  const means = sums.map((sum, place) => sum / Math.max(1, numbers[Math.floor(place / width)] as number));
  const deviations = centred.map((value, place) => {
    const i = Math.floor(place / width);
    return counts[i] === 1 ? value - (means[(labels[i] as number) * width + (place % width)] as number) : 0;
  });
  const present = means.filter((_, place) => (numbers[Math.floor(place / width)] as number) > 0);
  const counted = numbers.reduce((sum, number) => sum + number, 0);
  return { means: present, deviations, freedom: counted - present.length / width };
}

/**
 * The covariance of rows, in units of its mean variance, drawn towards even in all directions by as many imagined rows
 * as a row is wide: from few rows it is nearly even.
 */
function shrunkSpread(rows: Float64Array, freedom: number, width: number): Float64Array {
  const columns = transposed(rows, rows.length / width, width);
  const spread = product(columns, columns, { rows: width, columns: width, inner: rows.length / width });
  let trace = 0;
  for (let j = 0; j < width; j++) trace += spread[j * width + j] as number;
  const unit = Math.max(NO_SPREAD, trace / (width * Math.max(1, freedom)));
  const all = freedom + width;
  return spread.map((value, place) => (value / unit + (place % (width + 1) === 0 ? width : 0)) / all);
}

function lessTheirMean(rows: Float64Array, width: number): Float64Array {
  const mean = new Float64Array(width);
  const count = rows.length / width;
  for (const [place, value] of rows.entries()) mean[place % width] = (mean[place % width] as number) + value / count;
  return rows.map((value, place) => value - (mean[place % width] as number));
}

function product(
  a: Float64Array,
  b: Float64Array,
  sizes: { readonly rows: number; readonly columns: number; readonly inner: number },
): Float64Array {
  const out = new Float64Array(sizes.rows * sizes.columns);
  timesTransposed(a, b, out, sizes);
  return out;
}
