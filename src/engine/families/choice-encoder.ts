/** Encodes choices, or takes their vectors from the cache where it has them. */
import type { ChoiceTokens } from './choice-tokens.ts';
import type { RunControl } from './family.ts';

/** The result of encoding a list of choices: the vectors in order, and how many of them had to be computed. */
export interface EncodedChoices {
  readonly vectors: readonly Float32Array[];
  readonly encoded: number;
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
    return { vectors: found as readonly Float32Array[], encoded: missing.length };
  };
}
