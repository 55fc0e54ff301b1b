/**
 * What the key store said of keys recently. A key that was found is looked up again after 3 s, one that was not after
 * 1 s. While the store is unavailable, a key that was found within the last ten minutes is still believed; a decision
 * can go on with it, whereas catalog work fails at the store itself. Keys that were not found are remembered apart from
 * those that were, so that junk pushes no good key out.
 */
import { LRUCache } from 'lru-cache';
import type { StoreBudget } from '../stores/budget.ts';
import type { KeyRecord, KeyStore } from '../stores/key-store.ts';
import { StoreUnavailable } from '../stores/stores.ts';
import { storeFailure } from './store-failures.ts';

/** What is known of a key: its record, that there is none, one that has to be looked up again, or nothing. */
export type KnownKey =
  | { readonly kind: 'found'; readonly record: KeyRecord }
  | { readonly kind: 'absent' | 'outdated' | 'unknown' };

/** Keys by their hashes. */
export interface KnownKeys {
  /** Says what is known without asking the store. */
  recall(hash: string): KnownKey;
  /** Whether a look-up of the key is in progress. */
  isLooking(hash: string): boolean;
  /**
   * Asks the store, once for all who wait. Resolves to undefined if there is no such key. @throws DomainError
   * STORE_UNAVAILABLE, unless the key is still believed.
   */
  look(hash: string, budget: StoreBudget): Promise<KeyRecord | undefined>;
}

/** A key that was found. `at`: when the store said so. While the store is unavailable, only `nextLook` moves. */
interface Found {
  readonly record: KeyRecord;
  readonly at: number;
  nextLook: number;
}

/** Milliseconds after which a key that was found, or was not, is looked up again. */
const FOUND_MS = 3_000;
const ABSENT_MS = 1_000;
/** Milliseconds for which a key that was found is believed while the store is unavailable. */
const BELIEVED_MS = 10 * 60_000;
/** The most keys of either kind that are remembered. */
const MAX_FOUND = 50_000;
const MAX_ABSENT = 10_000;

/** The known keys of a store, none so far. `clock`: milliseconds on a clock that never goes back. */
export function createKnownKeys(keys: KeyStore, clock: () => number): KnownKeys {
  const found = new LRUCache<string, Found>({ maxSize: MAX_FOUND, sizeCalculation: () => 1 });
  // The values say when to look the key up again.
  const absent = new LRUCache<string, number>({ maxSize: MAX_ABSENT, sizeCalculation: () => 1 });
  const looking = new Map<string, Promise<KeyRecord | undefined>>();

  const note = (hash: string, record: KeyRecord | undefined, at: number): void => {
    if (record === undefined) {
      found.delete(hash);
      absent.set(hash, at + ABSENT_MS);
    } else {
      absent.delete(hash);
      found.set(hash, { record, at, nextLook: at + FOUND_MS });
    }
  };

  /** The record that is believed while the store is unavailable. */
  const believed = (hash: string, error: unknown, now: number): KeyRecord => {
    const entry = found.get(hash);
    const holds = error instanceof StoreUnavailable && entry !== undefined && now < entry.at + BELIEVED_MS;
    if (!holds) throw storeFailure(error);
    entry.nextLook = clock() + ABSENT_MS;
    return entry.record;
  };

  return {
    recall(hash) {
      const entry = found.get(hash);
      if (entry !== undefined)
        return clock() < entry.nextLook ? { kind: 'found', record: entry.record } : { kind: 'outdated' };
      const nextLook = absent.get(hash);
      return { kind: nextLook !== undefined && clock() < nextLook ? 'absent' : 'unknown' };
    },
    isLooking: (hash) => looking.has(hash),
    look(hash, budget) {
      const running = looking.get(hash);
      if (running !== undefined) return running;
      const started = clock();
      const lookup = keys
        .find(hash, budget)
        .then(
          (record) => {
            note(hash, record, started);
            return record;
          },
          (error: unknown) => believed(hash, error, started),
        )
        .finally(() => looking.delete(hash));
      looking.set(hash, lookup);
      return lookup;
    },
  };
}
