/**
 * A linear map of vectors that brings out what tells choices apart. Weights that are fitted to mapped vectors, all with
 * the same pull towards 0, stay smaller along directions in which the examples of one choice differ from each other and
 * grow larger along those in which choices differ. It is the prior of a two-covariance model (PLDA: Ioffe,
 * Probabilistic Linear Discriminant Analysis, 2006): with the covariance S within choices and T of their means, weights
 * are distributed normally with covariance S⁻¹ T S⁻¹.
 */
import { centredRows, cholesky, inverseOfLower, product, transposed } from './matrix.ts';
import type { Parameters, RegressionData, VectorData } from './regression.ts';

/** A mean variance below this is a rounding error: vectors have length 1. */
const NO_SPREAD = 1e-12;

/** Data whose vectors are mapped, and the map [width, width]. */
export interface Contrasted {
  readonly data: RegressionData;
  readonly map: Float64Array;
}

/** Maps the vectors of all examples. The map is fitted to those with 1 and not 0 in `counts`. Needs vectors. */
export function contrasted(data: RegressionData, counts: Int32Array): Contrasted {
  const vectors = data.vectors as VectorData;
  const { width, mean, centred } = vectors;
  const { means, deviations, freedom } = withinChoices(data, vectors, counts);
  // After the first half of the map, the examples of a choice differ equally in all directions.
  const even = inverseOfLower(cholesky(shrunkSpread(deviations, freedom, width), width), width);
  const choices = means.length / width;
  const evenMeans = product(centredRows(means, width).centred, even, { rows: choices, columns: width, inner: width });
  const between = cholesky(shrunkSpread(evenMeans, choices - 1, width), width);
  const square = { rows: width, columns: width, inner: width };
  const map = product(transposed(between, width, width), transposed(even, width, width), square);
  const rows = product(centred, map, { rows: data.examples, columns: width, inner: width });
  const mapped = { width, mean, centred: rows, columns: transposed(rows, data.examples, width) };
  return { data: { ...data, vectors: mapped }, map };
}

/** Turns parameters for mapped vectors into those for the original ones. */
export function beforeMap({ data: { choices, vectors }, map }: Contrasted, at: Parameters): Parameters {
  const { width } = vectors as VectorData;
  const sizes = { rows: choices, columns: width, inner: width };
  const weights = product(at.subarray(1 + choices), transposed(map, width, width), sizes);
  const parameters = at.slice();
  parameters.set(weights, 1 + choices);
  return parameters;
}

/** The means of choices with examples, the deviations from them, and their degrees of freedom (n - choices). */
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
 * The covariance of rows, in units of its mean variance, shrunk towards the identity, which counts as much as `width`
 * rows: from few rows it is nearly the identity.
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
