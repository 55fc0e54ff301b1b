/**
 * From a model's distribution to the one that a caller reads: six decimals each, none 0, summing to exactly 1.
 *
 * In millionths: every choice first gets 1, which mixes a floor in, and the rest is shared out by largest remainder.
 * The floor is part of the mixture and not a repair afterwards, so the probabilities keep the order that the model
 * gave them.
 */
const MILLION = 1_000_000;

/** A rounded distribution and its winner. */
export interface Rounded {
  /** Index of the winner: the greatest probability, the first index of an exact tie. */
  readonly winner: number;
  /** Six-decimal probabilities, in the order given. */
  readonly probabilities: Float64Array;
}

/**
 * Rounds `raw`, of 1 to 300 non-negative numbers that need not sum to exactly 1. An exact tie of remainders goes to the
 * greater number, and of equal ones to the lower index, so an input in code-unit order of the choices gives the same
 * result for every order of submission.
 *
 * @throws RangeError if a number is negative or not finite, or if all are 0.
 */
export function roundDistribution(raw: Float64Array): Rounded {
  const count = raw.length;
  let total = 0;
  let winner = 0;
  for (let index = 0; index < count; index += 1) {
    const value = raw[index] as number;
    if (!(value >= 0)) throw new RangeError('a probability is negative or not a number');
    total += value;
    if (value > (raw[winner] as number)) winner = index;
  }
  const scale = (MILLION - count) / total;
  // A sum so small that its scale overflows makes no distribution either.
  if (!(total > 0) || total === Number.POSITIVE_INFINITY || scale === Number.POSITIVE_INFINITY)
    throw new RangeError('the probabilities do not sum to a positive number');

  const units = new Float64Array(count);
  const remainders = new Float64Array(count);
  let left = MILLION - count;
  for (let index = 0; index < count; index += 1) {
    const share = (raw[index] as number) * scale;
    const whole = Math.floor(share);
    units[index] = whole + 1;
    remainders[index] = share - whole;
    left -= whole;
  }
  giveToLargest(units, remainders, left, raw);
  for (let index = 0; index < count; index += 1) units[index] = (units[index] as number) / MILLION;
  return { winner, probabilities: units };
}

/**
 * Adds 1 to the units of the `wanted` largest remainders. Of equal remainders those of the greater numbers come first:
 * two numbers that differ only in their last bits can have the same share.
 */
function giveToLargest(units: Float64Array, remainders: Float64Array, wanted: number, raw: Float64Array): void {
  if (wanted <= 0) return;
  const least = remainders.toSorted()[remainders.length - wanted] as number;
  let left = wanted;
  const tied: number[] = [];
  for (let index = 0; index < units.length; index += 1) {
    const remainder = remainders[index] as number;
    if (remainder === least) tied.push(index);
    if (remainder <= least) continue;
    units[index] = (units[index] as number) + 1;
    left -= 1;
  }
  if (tied.length > left) tied.sort((a, b) => (raw[b] as number) - (raw[a] as number) || a - b);
  for (const index of tied.slice(0, left)) units[index] = (units[index] as number) + 1;
}
