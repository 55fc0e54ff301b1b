/**
 * What becomes of a text that the server does not read whole: the caller is told so with the server's own counts, where
 * it gives them, since only they explain the refusal.
 */
import { ChoiceTooLong, InputTooLong } from '../family.ts';
import { CallFailed } from './call-failed.ts';
import type { ReadChoice } from './scorer.ts';

/**
 * The error that replaces a failed call about a premise, alone or with a choice. Any other error is returned as it is.
 */
export function ofPremise(error: unknown): unknown {
  if (!(error instanceof CallFailed) || error.tooLong === undefined) return error;
  const { tokens, limit } = error.tooLong;
  if (limit === undefined) return new InputTooLong();
  return new InputTooLong(tokens !== undefined && tokens > limit ? { tokens, limit } : { limit });
}

/**
 * The error that replaces a failed call about choices alone; it names the longest. Any other error is returned as it
 * is.
 */
export function ofChoices(error: unknown, choices: readonly ReadChoice[]): unknown {
  const longest = choices.reduce<ReadChoice | undefined>(
    (found, each) => (found !== undefined && found.ids.length >= each.ids.length ? found : each),
    undefined,
  );
  if (!(error instanceof CallFailed) || error.tooLong === undefined || longest === undefined) return error;
  const { tokens = longest.ids.length, limit } = error.tooLong;
  // If a server counts nothing, all that is known is that it takes fewer.
  return new ChoiceTooLong(longest.text, tokens, limit !== undefined && limit < tokens ? limit : tokens - 1);
}
