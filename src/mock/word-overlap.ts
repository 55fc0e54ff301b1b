/**
 * How the mock decides, so that a test can say beforehand what it will answer: the choice whose words occur in the
 * input gets the most. A pure function of the request, the same on every machine.
 *
 *     share  = the share of the choice's words that occur in the input, 0 to 1
 *     logit  = 4 × share + h, where h is a number from 0 to 1 that a hash of instruction, input and choice gives
 *     p      = softmax over the choices
 *
 * A word is a run of letters and digits, in lower case; a token is a word or any other character that is not a space.
 */
import { hash } from 'node:crypto';

const TOKEN = /[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu;
const WORD = /[\p{L}\p{N}]+/gu;
/** A full match outweighs every hash. */
const WEIGHT = 4;

/** How many tokens a text has. */
export function countTokens(text: string): number {
  let count = 0;
  for (const _ of text.matchAll(TOKEN)) count += 1;
  return count;
}

/** A probability for each choice, in their order. */
export function overlapProbabilities(instruction: string, input: string, choices: readonly string[]): Float64Array {
  const there = new Set(wordsOf(input));
  const weights = Float64Array.from(choices, (choice) => {
    const words = wordsOf(choice);
    const share = words.length === 0 ? 0 : words.filter((word) => there.has(word)).length / words.length;
    return Math.exp(WEIGHT * share + fraction(JSON.stringify([instruction, input, choice])));
  });
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

function wordsOf(text: string): readonly string[] {
  return Array.from(text.matchAll(WORD), ([word]) => word.toLowerCase());
}

/** A number from 0 to below 1 that depends on the text alone. */
export function fraction(text: string): number {
  return Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16) / 2 ** 32;
}
