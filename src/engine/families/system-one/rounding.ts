/** Finds out to what servers' probabilities are rounded, and makes logits of them. */

/** Fewer decimals cannot be told from answers that happen to be round. */
const LEAST_DECIMALS = 2;
/** Numbers with more decimals count as rounded to this many. */
const MOST_DECIMALS = 9;
/** Rounded numbers may have passed through single precision: how far off these are, below 1. */
const SINGLE_PRECISION = 2 ** -24;

/** Half of the last decimal place that all of them are rounded to: of 2 to 9 decimals the fewest that fit all. */
export function halfDigitOf(probabilities: Float64Array): number {
  for (let decimals = LEAST_DECIMALS; decimals < MOST_DECIMALS; decimals++) {
    const scale = 10 ** decimals;
    const slack = Math.min(SINGLE_PRECISION, 0.01 / scale);
    if (probabilities.every((p) => Math.abs(p - Math.round(p * scale) / scale) <= slack)) return 0.5 / scale;
  }
  return 0.5 / 10 ** MOST_DECIMALS;
}

/**
 * The logarithm of each probability. Servers round, and what they rounded to 0 is not impossible: all the zeros
 * together are at most what rounding took off the others, half of a digit of each, and none is more than half a digit.
 */
export function logitsOf(probabilities: Float64Array): Float64Array {
  const half = halfDigitOf(probabilities);
  const zeros = probabilities.filter((p) => p < half).length;
  const least = half * Math.min(1, (probabilities.length - zeros) / Math.max(1, zeros));
  return probabilities.map((p) => Math.log(Math.max(p, least)));
}
