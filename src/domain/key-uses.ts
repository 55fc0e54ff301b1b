/**
 * When keys were last used. The authenticator looks up a key in use again every few seconds, so watching these look-ups
 * costs requests nothing. The uses are written together, at most once a minute; if the store is unavailable, those of
 * that minute are lost, and nobody waits for it.
 */
import { createStoreBudget } from '../stores/budget.ts';
import type { KeyStore } from '../stores/key-store.ts';

/** A key store that notes what it finds as used. */
export interface WatchedKeys {
  readonly keys: KeyStore;
  /** Writes what has not been written yet, and stops. */
  close(): Promise<void>;
}

const INTERVAL_MS = 60_000;
/** Milliseconds for one write. No request waits for it, so it may take longer than a request's store work. */
const WRITE_MS = 5_000;
/** The most keys that are noted between two writes; any more are noted in the next minute. */
const MAX_NOTED = 10_000;

/** Watches a store. `interval`: milliseconds between two writes; `clock`: milliseconds since the epoch. */
export function watchKeyUses(
  store: KeyStore,
  { interval = INTERVAL_MS, clock = Date.now }: { readonly interval?: number; readonly clock?: () => number } = {},
): WatchedKeys {
  let noted = new Map<string, number>();
  let writing: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    if (noted.size === 0 || writing !== undefined) return writing;
    const uses = noted;
    noted = new Map();
    writing = store.used(uses, createStoreBudget(WRITE_MS)).catch(() => {});
    await writing;
    writing = undefined;
  };
  const timer = setInterval(() => void write(), interval);
  timer.unref();

  return {
    keys: {
      ...store,
      async find(hash, budget) {
        const record = await store.find(hash, budget);
        const now = clock();
        const live = record !== undefined && (record.endsAt === undefined || record.endsAt > now);
        if (live && (noted.has(hash) || noted.size < MAX_NOTED)) noted.set(hash, now);
        return record;
      },
    },
    async close() {
      clearInterval(timer);
      await writing;
      await write();
    },
  };
}
