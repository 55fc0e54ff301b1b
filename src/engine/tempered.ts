/**
 * Probabilities at a temperature T: p^(1/T), normalised. T > 1 makes them more even, T < 1 more decided. Their order
 * stays as it is, so no answer changes, only how sure it is. Also softmax, and the weighted product of several
 * distributions, their logarithmic opinion pool (Genest and Zidek, 1986).
 */

/**
 * The probabilities at a temperature; at 1 the same object. The first of the highest stays the first of the highest.
 */
export function applyTemperature(probabilities: Float64Array, temperature: number): Float64Array {
  if (temperature === 1) return probabilities;
  const winner = firstHighest(probabilities);
  const highest = probabilities[winner] as number;
  // Relative to the highest, so that a low temperature cannot make all of them 0.
  const powers = probabilities.map((p, i) => {
    const power = (p / highest) ** (1 / temperature);
    // Two that differ only in their last digits may come out equal; the margin survives the division below.
    return i < winner ? Math.min(power, 1 - 4 * Number.EPSILON) : power;
  });
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** Softmax of `logits`, computed in doubles in the given order; equal logits get equal numbers. */
export function softmax(logits: Float64Array): Float64Array {
  let highest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) highest = Math.max(highest, logit);
  const probabilities = new Float64Array(logits.length);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) {
    const weight = Math.exp((logits[i] ?? 0) - highest);
    probabilities[i] = weight;
    sum += weight;
  }
  for (let i = 0; i < probabilities.length; i++) probabilities[i] = (probabilities[i] ?? 0) / sum;
  return probabilities;
}

/**
 * The probabilities, with the mass of those at `places` shared out as `within` says: what knows only some of the
 * choices decides among these. The same object.
 */
export function sharedOut(probabilities: Float64Array, places: readonly number[], within: Float64Array): Float64Array {
  const mass = places.reduce((sum, place) => sum + (probabilities[place] as number), 0);
  for (const [i, place] of places.entries()) probabilities[place] = mass * (within[i] as number);
  return probabilities;
}

/** ln p, bounded: no probability that callers see is lower, and no model that says 0 overrules all others. */
export function logOf(probability: number): number {
  return Math.log(Math.max(1e-6, probability));
}

/** The product of p^weight over the distributions, normalised: always in one order, so that it repeats bit for bit. */
export function weightedProduct(distributions: readonly Float64Array[], weights: readonly number[]): Float64Array {
  const [first = new Float64Array(0)] = distributions;
  const logit = (k: number): number =>
    distributions.reduce((sum, each, i) => sum + (weights[i] as number) * logOf(each[k] as number), 0);
  return softmax(first.map((_, k) => logit(k)));
}

function firstHighest(values: Float64Array): number {
  let place = 0;
  for (let i = 1; i < values.length; i++) if ((values[i] as number) > (values[place] as number)) place = i;
  return place;
}
