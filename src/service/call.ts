/** What a handler knows of the call that it answers, whatever protocol it came by. */
import type { Caller } from '../domain/callers.ts';
import type { Unread } from '../engine/engine.ts';
import type { StoreBudget } from '../stores/budget.ts';

/**
 * Facts that a handler leaves for the request's log line, `Server-Timing` and metrics. Never a key, an
 * input or a choice.
 */
export interface CallFacts {
  model?: string;
  inputTokens?: number;
  /** How much of the input the model has no words for. */
  unread?: Unread;
  choices?: number;
  confidence?: number;
  /** The digest of what the catalog learned, if that decided. */
  learned?: string;
  /** Stage name to milliseconds: `auth`, `store`, `queue`, `tokenize`, `infer`. */
  timings?: Record<string, number>;
}

/** One call in progress. */
export interface Call {
  readonly requestId: string;
  readonly caller: Caller;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
  /** When the answer is worthless, on the clock of `performance.now()`, milliseconds. */
  readonly deadline: number;
  readonly facts: CallFacts;
  /** What the call's store work may still take, all of it together. */
  readonly storeBudget: StoreBudget;
  /**
   * Says that work for the call goes on until the returned function is called, even if its caller has left: so long it
   * counts against the caller's limit of decisions in progress.
   */
  retain(): () => void;
}
