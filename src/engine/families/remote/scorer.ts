/** What a dialect provides to the remote family: a scorer, and what goes in and out of it. */
import type { Premise } from '../family.ts';
import type { JobCall } from './calls.ts';

/** Choices with their tokens, within the limit. */
export interface ReadChoice {
  readonly text: string;
  readonly ids: readonly number[];
}

/** What a scorer makes of a server's numbers. */
export interface Logits {
  /** One for each choice, finite, not yet divided by the package's temperature. */
  readonly logits: Float64Array;
  /** How many choices the server had to read. */
  readonly read: number;
  /** The vector of the text, of length 1, where the server gives one: learned weights read it. */
  readonly vector?: Float32Array;
  /**
   * Why numbers like these cannot tell choices apart, for example because they were cut off. A package whose canary
   * decision has such numbers is not served; in other decisions this is ignored.
   */
  readonly doubt?: string | undefined;
}

/** Makes logits of a server's numbers, by calls. */
export interface Scorer {
  /** Rejects with CallFailed. The choices are in code-unit order. */
  logits(premise: Premise, choices: readonly ReadChoice[], call: JobCall): Promise<Logits>;
  /** Does in advance what depends on the choices alone. Rejects with CallFailed. */
  prepare(choices: readonly ReadChoice[], call: JobCall): Promise<void>;
  /** Whether a choice's row holds the premise. */
  readonly choiceReadsPremise: boolean;
}
