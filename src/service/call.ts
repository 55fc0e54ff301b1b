/** What a handler knows of the call that it answers, whatever protocol it came by. */
import type { Caller } from '../domain/callers.ts';
import type { StoreBudget } from '../stores/budget.ts';

/** Facts that a handler leaves for the request's log line, `Server-Timing` and metrics. Never a key, an input or a choice. */
export interface CallFacts {
  model?: string;
  inputTokens?: number;
  choices?: number;
  confidence?: number;
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
  /** What the request may still wait for stores: the same object goes to authentication and limits. Absent: a fresh one. */
  readonly storeBudget?: StoreBudget;
}
