/** What the dialects have in common for the family that decides by them. */
import type { Premise } from '../family.ts';
import type { JobCall } from './calls.ts';

/** Choices with their tokens, within the limit. */
export interface ReadChoice {
  readonly text: string;
  readonly ids: readonly number[];
}

/** What a server's numbers came to. */
export interface Logits {
  /** One for each choice, finite, not yet divided by the package's temperature. */
  readonly logits: Float64Array;
  /** How many choices the server had to read. */
  readonly read: number;
  /** The vector of the text, of length 1, where the server gives one: learned weights read it. */
  readonly vector?: Float32Array;
  /**
   * Why numbers like these cannot tell choices apart, such as that they were cut off. A package whose canary decision
   * has such numbers does not serve; of other decisions it is not asked.
   */
  readonly doubt?: string | undefined;
}

/** Makes logits of a server's numbers. */
export interface Scorer {
  /** Rejects with CallFailed. The choices are in code-unit order. */
  logits(premise: Premise, choices: readonly ReadChoice[], call: JobCall): Promise<Logits>;
  /** Does ahead of time what depends on the choices alone. Rejects with CallFailed. */
  prepare(choices: readonly ReadChoice[], call: JobCall): Promise<void>;
  /** Whether a choice's row holds the premise. */
  readonly choiceReadsPremise: boolean;
}
