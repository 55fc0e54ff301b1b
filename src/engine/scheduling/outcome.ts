/** What a caller is told about a decision that ran. */
import type { ScoreOutcome } from '../engine.ts';
import type { JobResult } from '../worker/messages.ts';
import type { Job } from './job.ts';

/** A final result: no other engine is asked for one. */
export type Settled = Exclude<JobResult, { readonly kind: 'failed' }>;

/** The outcome that the caller gets for an engine's result. */
export function outcomeOf(result: Exclude<Settled, { kind: 'unavailable' | 'canceled' }>, job: Job): ScoreOutcome {
  if (result.kind === 'scored') {
    const { probabilities, vector, inputTokens, unread, tokenize, infer, waited } = result;
    return {
      kind: 'scored',
      probabilities,
      vector,
      inputTokens,
      unread,
      timings: { queue: job.sentAt - job.arrived + waited, tokenize, infer },
    };
  }
  if (result.kind === 'input_too_long' || result.kind === 'choice_too_long') return result;
  // A decision never ends as prepared.
  throw new Error(`a decision ended as ${result.kind}`);
}
