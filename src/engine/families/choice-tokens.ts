/** Tokenises choices, a long one in pieces, and counts the tokens against the model's limit. */
import { boundedTokens, COUNTING_FACTOR } from '../text/bounded-tokens.ts';
import type { TextTokenizer } from '../text/tokenizer.ts';
import { ChoiceTooLong, pauseOf, type RunControl } from './family.ts';

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
export type ChoiceTokens = (choices: readonly string[], control: RunControl) => Promise<readonly (readonly number[])[]>;

/** `words`: the text that is tokenised in place of a choice. */
export function createChoiceTokens(
  tokenizer: TextTokenizer,
  limit: number,
  words?: (choice: string) => string,
): ChoiceTokens {
  return async (choices, control) => {
    const pause = pauseOf(control);
    const all: (readonly number[])[] = [];
    for (const choice of choices) all.push(await tokensOfChoice(tokenizer, choice, limit, pause, words?.(choice)));
    return all;
  };
}
