/** What a key store does. `test/stores/key-store-suite.ts` is its contract; every store passes it. */
import type { StoreBudget } from './budget.ts';

/** Limits of one key. An absent one is the deployment's default, `'off'` is no limit. */
export interface KeyLimits {
  /** Sustained requests per second, and how many may come at once. */
  readonly rate?: { readonly perSecond: number; readonly burst: number } | 'off';
  /** Decisions in progress at a time. */
  readonly concurrency?: number | 'off';
  /** Decisions per day (UTC). */
  readonly quota?: number | 'off';
}

/** A key without its secret. */
export interface KeyRecord {
  /** `key_` and 16 base62 characters: names the key in lists and commands, and authenticates nobody. */
  readonly keyId: string;
  /** SHA-256 of the whole key, in hex. */
  readonly hash: string;
  /** Who owns the key's catalogs; a rotation keeps it. */
  readonly owner: string;
  readonly limits: KeyLimits;
  /** What the operator calls it, to tell the keys of one owner apart. Absent, rather than empty, if it has none. */
  readonly label?: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** When the key ends or ended, milliseconds since the epoch: set by a rotation (after its grace), or `REVOKED`. */
  readonly endsAt?: number;
  /** What set `endsAt`. Absent for keys that were ended before this was stored. */
  readonly endedBy?: KeyEnd;
  /** When a server last saw it in use, milliseconds since the epoch, to about a minute. Absent if none has. */
  readonly lastUsedAt?: number;
}

/**
 * The end of a revoked key, milliseconds since the epoch: earlier than any clock's present, so that a wrong clock
 * cannot make a revoked key valid again.
 */
export const REVOKED = 0;

/** Milliseconds by which a noted use lies ahead of a new one if the clock that it was noted by was wrong. */
export const WRONG_CLOCK_MS = 86_400_000;

/** Why a key ends. */
export type KeyEnd = 'rotation' | 'revocation';

/** All keys of a store. */
export interface KeyList {
  /** Ordered by owner, then by age. */
  readonly records: readonly KeyRecord[];
  readonly unreadable: readonly UnreadableKey[];
}

/** A key whose record cannot be read: its holder is refused, and it can be ended all the same. */
export interface UnreadableKey {
  readonly hash: string;
  /** What names it: its id if that can be read, or else its hash. */
  readonly name: string;
  /** Undefined if it cannot be read. */
  readonly owner: string | undefined;
}

/**
 * Keys by hash. Every method throws StoreUnavailable; those that write also throw StoreWriteUnconfirmed, those that
 * read also throw StoreCorrupt.
 */
export interface KeyStore {
  /** The record of a key, whether it has ended or not; undefined if there is none. */
  find(hash: string, budget: StoreBudget): Promise<KeyRecord | undefined>;
  /** Adds a key. Resolves to false, with nothing changed, if the hash exists. */
  add(record: KeyRecord, budget: StoreBudget): Promise<boolean>;
  /** Sets `endsAt` and `endedBy`, unless an earlier end is set. Resolves to false if there is no such hash. */
  end(hash: string, endsAt: number, endedBy: KeyEnd, budget: StoreBudget): Promise<boolean>;
  /**
   * Records when keys were last used, milliseconds since the epoch by hash. Never an earlier time, unless the one that
   * is noted comes from a wrong clock; never a new key.
   */
  used(uses: ReadonlyMap<string, number>, budget: StoreBudget): Promise<void>;
  /** All keys. For operators, since it scans the whole store. A record that cannot be read keeps no other from it. */
  list(budget: StoreBudget): Promise<KeyList>;
}
