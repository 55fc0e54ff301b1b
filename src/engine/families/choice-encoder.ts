/**
 * Tokenises choices, counts the tokens against the model's limit, and encodes them, or takes their vectors from the
 * cache where it has them.
 */
import { boundedTokens, COUNTING_FACTOR } from '../text/bounded-tokens.ts';
import type { TextTokenizer } from '../text/tokenizer.ts';
import type { ChoiceVectors } from './choice-vectors.ts';
import { ChoiceTooLong, type RunControl } from './family.ts';

type Ids = readonly number[];

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
): Promise<Ids> {
  const found = await boundedTokens(tokenizer, words, COUNTING_FACTOR * limit, pause);
  const tokens = found.kind === 'tokens' ? found.ids.length : found.count;
  if (found.kind === 'more_than' || tokens > limit) throw new ChoiceTooLong(choice, tokens, limit);
  return found.ids;
}

/** The tokens of each choice, as `tokensOfChoice`. `wordsOf`: the text that is read in a choice's place. */
export async function tokensOfChoices(
  tokenizer: TextTokenizer,
  choices: readonly string[],
  limit: number,
  { pause }: Pick<RunControl, 'pause'>,
  wordsOf?: (choice: string) => string,
): Promise<readonly Ids[]> {
  const all: Ids[] = [];
  for (const choice of choices) all.push(await tokensOfChoice(tokenizer, choice, limit, pause, wordsOf?.(choice)));
  return all;
}

/** The tokens of one of these choices on average, as `FamilyScores` says; none for no choices. */
export function meanTokens(choices: readonly Ids[]): { readonly choiceTokens?: number } {
  if (choices.length === 0) return {};
  return { choiceTokens: choices.reduce((sum, { length }) => sum + length, 0) / choices.length };
}

/**
 * The vectors of choices in their order, how many of them had to be computed, and how many tokens these have on
 * average.
 */
export interface EncodedChoices {
  readonly vectors: readonly Float32Array[];
  readonly encoded: number;
  readonly choiceTokens?: number;
}

/**
 * Encodes what the cache does not have; a cached choice was within the limit when it was encoded. Throws what
 * `tokensOf` throws before anything is encoded, and what `encode` throws.
 */
export async function encodeChoices(
  choices: readonly string[],
  cache: ChoiceVectors,
  tokensOf: (choices: readonly string[]) => Promise<readonly Ids[]>,
  encode: (tokens: Ids) => Promise<Float32Array>,
): Promise<EncodedChoices> {
  const found = choices.map((choice) => cache.get(choice));
  const missing = choices.flatMap((choice, place) => (found[place] === undefined ? [{ choice, place }] : []));
  const tokens = await tokensOf(missing.map(({ choice }) => choice));
  for (const [index, { choice, place }] of missing.entries()) {
    const vector = await encode(tokens[index] as Ids);
    cache.set(choice, vector);
    found[place] = vector;
  }
  return { vectors: found as readonly Float32Array[], encoded: missing.length, ...meanTokens(tokens) };
}
