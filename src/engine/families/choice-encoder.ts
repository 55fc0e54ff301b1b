/**
 * Tokenises choices, counts the tokens against the model's limit, and encodes them, or takes their vectors from the
 * cache where it has them.
 */
import { boundedTokens, COUNTING_FACTOR } from '../text/bounded-tokens.ts';
import type { TextTokenizer } from '../text/tokenizer.ts';
import { ChoiceTooLong, type RunControl } from './family.ts';

/**
 * The result of encoding a list of choices: the vectors in order, how many of them had to be computed, and how many
 * tokens these have on average.
 */
export interface EncodedChoices {
  readonly vectors: readonly Float32Array[];
  readonly encoded: number;
  readonly choiceTokens?: number;
}

/** Encodes what is not cached. Throws ChoiceTooLong before anything is encoded, and JobStopped. */
export type ChoiceEncoder = (choices: readonly string[], control: RunControl) => Promise<EncodedChoices>;

/** An encoder over the cache of each job. A cached choice was within the limit when it was encoded. */
export function createChoiceEncoder(
  tokensOf: ChoiceTokens,
  encode: (tokens: readonly number[], control: RunControl) => Promise<Float32Array>,
): ChoiceEncoder {
  return async (choices, control) => {
    const cache = control.vectors;
    const found = choices.map((choice) => cache.get(choice));
    const missing = choices.flatMap((choice, place) => (found[place] === undefined ? [{ choice, place }] : []));
    const tokens = await tokensOf(
      missing.map(({ choice }) => choice),
      control,
    );
    for (const [index, { choice, place }] of missing.entries()) {
      const vector = await encode(tokens[index] as readonly number[], control);
      cache.set(choice, vector);
      found[place] = vector;
    }
    return { vectors: found as readonly Float32Array[], encoded: missing.length, ...meanTokens(tokens) };
  };
}

/**
 * The tokens of a choice, or of the `words` that are read in its place. `pause` is awaited between pieces of a long
 * one. Throws ChoiceTooLong, and what `pause` throws.
 */
export async function tokensOfChoice(
  tokenizer: TextTokenizer,
  choice: string,
  limit: number,
  pause: () => Promise<void>,
  words = choice,
): Promise<readonly number[]> {
  const found = await boundedTokens(tokenizer, words, COUNTING_FACTOR * limit, pause);
  const tokens = found.kind === 'tokens' ? found.ids.length : found.count;
  if (found.kind === 'more_than' || tokens > limit) throw new ChoiceTooLong(choice, tokens, limit);
  return found.ids;
}

/** The tokens of each choice. Throws ChoiceTooLong and JobStopped. */
type ChoiceTokens = (choices: readonly string[], control: RunControl) => Promise<readonly (readonly number[])[]>;

/** The tokens of one of these choices on average, as `FamilyScores` says; none for no choices. */
export function meanTokens(choices: readonly (readonly number[])[]): { readonly choiceTokens?: number } {
  if (choices.length === 0) return {};
  return { choiceTokens: choices.reduce((sum, { length }) => sum + length, 0) / choices.length };
}

/** `words`: the text that is tokenised in place of a choice. */
export function createChoiceTokens(
  tokenizer: TextTokenizer,
  limit: number,
  words?: (choice: string) => string,
): ChoiceTokens {
  return async (choices, control) => {
    const all: (readonly number[])[] = [];
    for (const choice of choices)
      all.push(await tokensOfChoice(tokenizer, choice, limit, control.pause, words?.(choice)));
    return all;
  };
}
