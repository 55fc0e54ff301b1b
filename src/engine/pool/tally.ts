/** What the processes of all groups have done since the start, as `EngineStats` says. */
import type { ScoredResult } from '../worker/messages.ts';

/** Counts, at zero first. */
export class Tally {
  busy = 0;
  replacements = 0;
  restarts = 0;
  readonly abandoned = { stuck: 0, crashed: 0 };
  readonly choices = { encoded: 0, cached: 0 };

  /** A decision was made here. */
  scored({ tokenize, infer, encoded, probabilities }: ScoredResult): void {
    this.busy += tokenize + infer;
    this.choices.encoded += encoded;
    this.choices.cached += probabilities.length - encoded;
  }
}
