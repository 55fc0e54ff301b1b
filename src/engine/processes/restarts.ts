/** How long to wait before an engine that ended is started again. */

/** The life of the engine that ended. */
export interface EngineLife {
  /** Whether it had loaded a model. */
  readonly served: boolean;
  /** Milliseconds from its start to its end. */
  readonly lived: number;
}

const first = 100;
const longestAfterService = 1000;
const longestOtherwise = 30_000;
const calm = 10_000;

/**
 * Milliseconds; `previous` is the last delay, 0 if there was none. One that had served is back soon even if it is killed again and again; one
 * that never got that far is tried less and less often.
 */
export function restartDelay({ served, lived }: EngineLife, previous: number): number {
  if (served && lived >= calm) return first;
  return Math.min(served ? longestAfterService : longestOtherwise, Math.max(first, previous * 2));
}
