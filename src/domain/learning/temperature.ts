/** The temperature of a whole model, from examples whose labels are known. */
import { goldenSection } from './golden-section.ts';

/** What a model said of an example at the temperature 1, and the place of its label. */
export interface UntemperedExample {
  readonly probabilities: Float64Array;
  readonly label: number;
}

/** A temperature lies between e^-7 and e^7. */
const FARTHEST = 7;
/** Steps of the search, which leave less than a millionth of the interval. */
const STEPS = 32;
/** Lower probabilities count as this one, since 0 has no logarithm. */
const LEAST = 1e-300;

/**
 * The temperature with the least loss, drawn a little towards the usual one: where every answer is right, the examples
 * alone would have no best temperature.
 */
export function fitTemperature(examples: readonly UntemperedExample[], usual: number): number {
  const scored = examples.map(({ probabilities, label }) => ({
    logits: probabilities.map((p) => Math.log(Math.max(p, LEAST))),
    label,
  }));
  const loss = (lnT: number): number =>
    scored.reduce((sum, { logits, label }) => sum + lossOf(logits, label, Math.exp(lnT)), (lnT - Math.log(usual)) ** 2);
  return Math.exp(goldenSection(loss, -FARTHEST, FARTHEST, STEPS));
}

/** −log of the label's probability. */
function lossOf(logits: Float64Array, label: number, temperature: number): number {
  const highest = logits.reduce((most, each) => Math.max(most, each));
  const sum = logits.reduce((total, each) => total + Math.exp((each - highest) / temperature), 0);
  return Math.log(sum) - ((logits[label] as number) - highest) / temperature;
}
