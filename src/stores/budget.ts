/** How long a request may still wait for stores: one budget for all its store calls, whatever it does between them. */

/** Milliseconds that a request may wait for stores in all. */
export const STORE_BUDGET_MS = 250;

/** The budget of one request. Mutable: each store call subtracts the time that it took. */
export interface StoreBudget {
  /** Milliseconds left; at or below 0 a store call fails at once. */
  remaining: number;
  /** The store calls, in the order in which they ended; the first `MAX_CALLS` of them. */
  readonly calls: StoreCall[];
}

/** When a store call began and ended, on the clock of `performance.now()`. */
export interface StoreCall {
  readonly start: number;
  readonly end: number;
}

/** Store calls that are recorded: no request makes more, and nobody reads those of an operator's command. */
const MAX_CALLS = 16;

/** The budget of one request that has not called a store yet. */
export function createStoreBudget(milliseconds: number = STORE_BUDGET_MS): StoreBudget {
  return { remaining: milliseconds, calls: [] };
}

/** Runs one store call and subtracts its time from the budget, however it ends. */
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
