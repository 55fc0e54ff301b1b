/** What a handler knows of the call that it answers, whatever protocol the call came by. */
import type { Caller } from '../domain/callers.ts';
import type { Unread } from '../engine/engine.ts';
import type { StoreBudget } from '../stores/budget.ts';

/**
 * Facts that a handler leaves for the request's log line, `Server-Timing` and metrics. Never a key, an
 * input or a choice.
 */
export interface CallFacts {
  model?: string;
  /** The languages that the model was measured in. */
  languages?: readonly string[];
  inputTokens?: number;
  /** How much of the input the model has no words for. */
  unread?: Unread;
  choices?: number;
  confidence?: number;
  /** The digest of the catalog's learned state, if that decided. */
  learned?: string;
  /** Milliseconds by stage, as the engine reports them: `queue`, `tokenize`, `infer`. */
  timings?: Record<string, number>;
}

/** One call in progress. */
export interface Call {
  readonly requestId: string;
  readonly caller: Caller;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
  /** When the answer is no longer wanted: milliseconds on the clock of `performance.now()`. */
  readonly deadline: number;
  readonly facts: CallFacts;
  /** How long the call may still wait for stores in all. */
  readonly storeBudget: StoreBudget;
  /**
   * Declares that work for the call goes on until the returned function is called, even if the caller has left. Until
   * then the call counts against the caller's limit of decisions in progress.
   */
  retain(): () => void;
}
