/**
 * Probabilities at a temperature T: p^(1/T), normalised. T > 1 makes them more even, T < 1 more decided. Their order
 * stays as it is, so no answer changes, only how sure it is. And the weighted product of several distributions, their
 * logarithmic opinion pool (Genest and Zidek, 1986).
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

/** No model is surer than this that a choice is wrong: one that says 0 would overrule all others. */
const LEAST = 1e-6;

/** The product of p^weight over the distributions, normalised: always in one order, so that it repeats bit for bit. */
export function weightedProduct(distributions: readonly Float64Array[], weights: readonly number[]): Float64Array {
  const [first = new Float64Array(0)] = distributions;
  const logits = first.map((_, k) =>
    distributions.reduce(
      (sum, each, i) => sum + (weights[i] as number) * Math.log(Math.max(LEAST, each[k] as number)),
      0,
    ),
  );
  const highest = logits.reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  const powers = logits.map((logit) => Math.exp(logit - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function firstHighest(values: Float64Array): number {
  let place = 0;
  for (let i = 1; i < values.length; i++) if ((values[i] as number) > (values[place] as number)) place = i;
  return place;
}
