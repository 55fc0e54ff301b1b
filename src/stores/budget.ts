/**
 * How long a request may still wait for stores: one budget for all its store work together, whatever work lies between.
 */

/** What a request has in all, milliseconds. */
export const STORE_BUDGET_MS = 250;

/** Mutable: each store call takes off what it used. One object per request. */
export interface StoreBudget {
  /** Milliseconds left; at or below 0 a store call fails at once. */
  remaining: number;
  /** The calls that were made, in the order in which they ended; not all of them where there are very many. */
  readonly calls: StoreCall[];
}

/** When a store call went on, on the clock of `performance.now()`. */
export interface StoreCall {
  readonly start: number;
  readonly end: number;
}

/** No request makes more calls; what an operator's command does is not looked at. */
const MAX_CALLS = 16;

/** The budget of one request that has not called a store yet. */
export function createStoreBudget(milliseconds: number = STORE_BUDGET_MS): StoreBudget {
  return { remaining: milliseconds, calls: [] };
}

/** Runs one store call and takes its time off the budget, however it ends. */
export async function spend<T>(budget: StoreBudget, call: () => Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    return await call();
  } finally {
    const end = performance.now();
    budget.remaining -= end - started;
    if (budget.calls.length < MAX_CALLS) budget.calls.push({ start: started, end });
  }
}
