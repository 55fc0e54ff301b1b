/** What counts limits across replicas. */
import type { StoreBudget } from './budget.ts';

/** One request's claim on its caller's limits; an absent part is not limited. */
export interface LimitDemand {
  /** Whose limits, such as `key:key_…` or `address:192.0.2.1`. */
  readonly subject: string;
  /** Sustained requests a second and the burst above it. */
  readonly rate?: { readonly perSecond: number; readonly burst: number };
  /** At most `limit` leases at a time; this one is named `lease` and ends by itself after `leaseMs`. */
  readonly concurrency?: { readonly limit: number; readonly lease: string; readonly leaseMs: number };
  /** Requests a day (UTC). */
  readonly quota?: number;
}

/**
 * A refusal changes nothing. `waitMs`: after how long a caller that is alone on its limit is admitted. For concurrency
 * only the age of the oldest lease is known, `oldestMs`: how long it will go on depends on the work.
 */
export type LimitVerdict =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly by: 'rate' | 'quota'; readonly waitMs: number }
  | { readonly kind: 'refused'; readonly by: 'concurrency'; readonly oldestMs: number };

/** Limits shared by replicas: all parts judged and taken together, in one round trip. */
export interface LimitStore {
  /** Judges a demand, and takes all of it where it is admitted. Throws StoreUnavailable. */
  take(demand: LimitDemand, budget: StoreBudget): Promise<LimitVerdict>;
  /** Gives a lease back. Never waits, never throws: a lost one ends by itself. */
  release(subject: string, lease: string): void;
}
