/**
 * When keys were last used. The authenticator looks up a key in use again every few seconds, so watching these look-ups
 * costs requests nothing. The uses are written together, at most once a minute; if the store is unavailable, those of
 * that minute are lost, and nobody waits for it.
 */
import { createStoreBudget, type StoreBudget } from '../stores/budget.ts';
import type { KeyRecord, KeyStore } from '../stores/key-store.ts';

const INTERVAL_MS = 60_000;
/** Milliseconds for one write. No request waits for it, so it may take longer than a request's store work. */
const WRITE_MS = 5_000;
/** The most keys that are noted between two writes; any more are noted in the next minute. */
const MAX_NOTED = 10_000;

/** A key store whose look-ups count as uses. */
export class KeyUses {
  readonly #store: KeyStore;
  readonly #clock: () => number;
  readonly #timer: NodeJS.Timeout;
  #noted = new Map<string, number>();
  #writing: Promise<void> | undefined;

  /** `interval`: milliseconds between two writes; `clock`: milliseconds since the epoch. */
  constructor(
    store: KeyStore,
    { interval = INTERVAL_MS, clock = Date.now }: { readonly interval?: number; readonly clock?: () => number } = {},
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#timer = setInterval(() => void this.#write(), interval);
    this.#timer.unref();
  }

  /** Finds a key as the store does, and notes one that is live. */
  async find(hash: string, budget: StoreBudget): Promise<KeyRecord | undefined> {
    const record = await this.#store.find(hash, budget);
    const now = this.#clock();
    const live = record !== undefined && (record.endsAt === undefined || record.endsAt > now);
    if (live && (this.#noted.has(hash) || this.#noted.size < MAX_NOTED)) this.#noted.set(hash, now);
    return record;
  }

  /** Writes what has not been written yet, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#write();
  }

  async #write(): Promise<void> {
    if (this.#noted.size === 0 || this.#writing !== undefined) return this.#writing;
    const uses = this.#noted;
    this.#noted = new Map();
    this.#writing = this.#store.used(uses, createStoreBudget(WRITE_MS)).catch(() => {});
    await this.#writing;
    this.#writing = undefined;
  }
}
