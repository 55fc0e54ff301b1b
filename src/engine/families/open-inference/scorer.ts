/** What the two kinds of server have in common for those who decide by them. */
import type { Premise } from '../family.ts';
import type { JobCall } from '../remote/calls.ts';

/** Choices with their tokens, within the limit. */
export interface ReadChoice {
  readonly text: string;
  readonly ids: readonly number[];
}

/** Makes logits of a server's numbers. */
export interface Scorer {
  /**
   * One logit for each choice, not yet divided by a temperature, and how many choices the server had to read. Rejects
   * with CallFailed.
   */
  logits(
    premise: Premise,
    choices: readonly ReadChoice[],
    call: JobCall,
  ): Promise<{ readonly logits: Float64Array; readonly read: number }>;
  /** Does ahead of time what depends on the choices alone. */
  prepare(choices: readonly ReadChoice[], call: JobCall): Promise<void>;
  /** Whether a choice's row holds the premise. */
  readonly choiceReadsPremise: boolean;
}
