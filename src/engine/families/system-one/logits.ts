/** From a server's probabilities to logits. */
import { halfDigitOf } from './rounding.ts';

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
