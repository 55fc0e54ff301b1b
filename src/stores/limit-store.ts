/** The interface of a store that counts limits for all replicas together. */
import type { StoreBudget } from './budget.ts';

/** What one request takes of its caller's limits; an absent part is not limited. */
export interface LimitDemand {
  /** Whose limits, such as `key:key_…` or `address:192.0.2.1`. */
  readonly subject: string;
  /** Sustained requests per second, and how many may come at once. */
  readonly rate?: { readonly perSecond: number; readonly burst: number };
  /** At most `limit` leases at a time; this request's is named `lease`, and expires after `leaseMs`. */
  readonly concurrency?: { readonly limit: number; readonly lease: string; readonly leaseMs: number };
  /** Requests per day (UTC). */
  readonly quota?: number;
}

/**
 * Whether a demand was granted; a refusal changes nothing. `waitMs`: milliseconds after which the caller's next demand
 * is granted if no other comes before it. `oldestMs`: the age of the oldest lease; when it ends depends on its work.
 */
export type LimitVerdict =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly by: 'rate' | 'quota'; readonly waitMs: number }
  | { readonly kind: 'refused'; readonly by: 'concurrency'; readonly oldestMs: number };

/** Limits shared by replicas. All parts of a demand are judged and taken together, in one round trip. */
export interface LimitStore {
  /** Judges a demand, and takes all of it if it is granted. Throws StoreUnavailable. */
  take(demand: LimitDemand, budget: StoreBudget): Promise<LimitVerdict>;
  /** Returns a lease. Never waits and never throws: a lease whose return is lost expires. */
  release(subject: string, lease: string): void;
}
