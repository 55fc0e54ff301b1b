/**
 * What all stores of a deployment have in common: the interface of them together, which `create-stores.ts` opens, that
 * of the store that counts limits for all replicas, and the failures, of which the domain makes the errors that a
 * caller sees.
 */
import type { StoreBudget } from './budget.ts';
import type { CatalogStore } from './catalog-store.ts';
import type { KeyStore } from './key-store.ts';

/** The health of the store, for metrics and logs. Readiness does not depend on it: inline decisions need no store. */
export interface StoreHealth {
  readonly kind: 'sqlite' | 'redis';
  readonly up: boolean;
  /** How often a connection was opened again since the start. */
  readonly reconnects: number;
  /** The last round trip, milliseconds; undefined if there was none. */
  readonly latencyMs: number | undefined;
}

/** The stores of one deployment, which are opened and closed together. */
export interface Stores {
  readonly catalogs: CatalogStore;
  readonly keys: KeyStore;
  /** Undefined with the embedded store: limits are then counted in memory. */
  readonly limits: LimitStore | undefined;
  health(): StoreHealth;
  /** Resolves when everything is closed. */
  close(): Promise<void>;
}

/** The message of an error, or anything else that was thrown, as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The store did not answer, or refused for now. No write was made, except perhaps a change that may be made twice. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  /** Whole seconds after which a retry is sensible, at least 1. */
  readonly retryAfter: number;
  constructor(message: string, options: { readonly cause?: unknown; readonly retryAfter?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfter = options.retryAfter ?? 1;
  }
}

/** A write was sent, but whether it was made, or will last, is not known. */
export class StoreWriteUnconfirmed extends Error {
  override readonly name = 'StoreWriteUnconfirmed';
}

/** A record exists and cannot be read. It is left as it is. */
export class StoreCorrupt extends Error {
  override readonly name = 'StoreCorrupt';
}

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

/** The part of the log that stores and limits need; a pino logger has it. Secrets are never logged. */
export interface StoreLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A log that discards everything: for tests and the operator's command. */
export const SILENT_LOG: StoreLog = { info() {}, warn() {}, error() {} };
