/** What a decision's probabilities must be. */

/** The units of a probability: contract 2.3 gives it six decimals. */
const MILLION = 1_000_000;

/**
 * What is wrong with probabilities, which must have six decimals each, none be 0, and sum to exactly 1; or undefined.
 */
export function distributionFault(probabilities: Readonly<Record<string, unknown>>): string | undefined {
  let sum = 0;
  for (const value of Object.values(probabilities)) {
    if (typeof value !== 'number' || !(value > 0 && value <= 1)) return `${value} is not a probability above 0`;
    const units = Math.round(value * MILLION);
    if (units / MILLION !== value) return `${value} has more than six decimals`;
    sum += units;
  }
  return sum === MILLION ? undefined : `they sum to ${sum / MILLION}`;
}

/** The most probable choice; of equal ones the first in code-unit order. */
export function winnerOf(probabilities: Readonly<Record<string, number>>): string | undefined {
  const choices = Object.keys(probabilities).toSorted();
  const most = Math.max(...choices.map((choice) => probabilities[choice] ?? 0));
  return choices.find((choice) => probabilities[choice] === most);
}
