/** Reads a premise: tokenises instruction and input, and counts the tokens against the model's limit. */
import type { LongInput, ScoreJob } from '../engine.ts';
import { boundedTokens, COUNTING_FACTOR } from '../text/bounded-tokens.ts';
import type { TextTokenizer } from '../text/tokenizer.ts';
import type { Premise, RunControl } from './family.ts';

/** A premise within the limit, or what to tell its caller. */
export type PremiseReading = { readonly kind: 'read'; readonly premise: Premise } | LongInput;

/** Tokenises both texts, in pieces where they are long. Throws JobStopped. */
export async function readPremise(
  tokenizer: TextTokenizer,
  { input, instruction }: Pick<ScoreJob, 'input' | 'instruction'>,
  limit: number,
  { pause }: Pick<RunControl, 'pause'>,
): Promise<PremiseReading> {
  const bound = COUNTING_FACTOR * limit;
  const instructionTokens = await boundedTokens(tokenizer, instruction, bound, pause);
  const inputTokens = await boundedTokens(tokenizer, input, bound, pause);
  if (instructionTokens.kind === 'more_than' || inputTokens.kind === 'more_than') {
    return { kind: 'input_too_long', tokens: bound, limit, atLeast: true };
  }
  const tokens = instructionTokens.ids.length + inputTokens.ids.length;
  if (tokens > limit) {
    return { kind: 'input_too_long', tokens: Math.min(tokens, bound), limit, atLeast: tokens > bound };
  }
  const premise = {
    instruction: instructionTokens.ids,
    input: inputTokens.ids,
    instructionText: instruction,
    inputText: input,
  };
  return { kind: 'read', premise };
}
