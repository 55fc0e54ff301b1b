/** What a key store does. `test/stores/key-store-suite.ts` is its contract; every store passes it. */
import type { StoreBudget } from './budget.ts';

/** Limits of one key; absent means the deployment's default, `'off'` no limit. */
export interface KeyLimits {
  /** Sustained requests a second and the burst above it. */
  readonly rate?: { readonly perSecond: number; readonly burst: number } | 'off';
  /** Decisions in progress at one time. */
  readonly concurrency?: number | 'off';
  /** Decisions a day (UTC). */
  readonly quota?: number | 'off';
}

/** A key without its secret. */
export interface KeyRecord {
  /** `key_` and 16 base62 characters: names the key in lists and commands, opens nothing. */
  readonly keyId: string;
  /** Hex SHA-256 of the whole key. */
  readonly hash: string;
  /** Who owns the catalogs; the same after a rotation. */
  readonly owner: string;
  readonly limits: KeyLimits;
  /** What the operator calls it, to tell the keys of one owner apart. Not there, rather than empty, if it has none. */
  readonly label?: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** When the key ends or ended, milliseconds since the epoch: set by a rotation (after its grace), or `REVOKED`. */
  readonly endsAt?: number;
  /** What set `endsAt`. Not there for keys that were ended before this was kept. */
  readonly endedBy?: KeyEnd;
  /** When a server last saw it in use, milliseconds since the epoch, to about a minute. Not there if none has. */
  readonly lastUsedAt?: number;
}

/**
 * The end of a revoked key: before every clock's now, so that a clock that is wrong or set back brings no
 * revoked key back.
 */
export const REVOKED = 0;

/** Why a key ends. */
export type KeyEnd = 'rotation' | 'revocation';

/**
 * Keys by hash. Every method throws StoreUnavailable; those that write StoreWriteUnconfirmed, those
 * that read StoreCorrupt.
 */
export interface KeyStore {
  /** The record, ended or not, or undefined. */
  find(hash: string, budget: StoreBudget): Promise<KeyRecord | undefined>;
  /** Adds a key. False if the hash is known already; then nothing changed. */
  add(record: KeyRecord, budget: StoreBudget): Promise<boolean>;
  /** Sets `endsAt` and why, unless an earlier end is set. False if the hash is not known. */
  end(hash: string, endsAt: number, endedBy: KeyEnd, budget: StoreBudget): Promise<boolean>;
  /** Notes when keys were last used, milliseconds since the epoch by hash. Never moves one back, and makes no key. */
  used(uses: ReadonlyMap<string, number>, budget: StoreBudget): Promise<void>;
  /** All keys, ordered by owner, then age. For operators: walks everything. */
  list(budget: StoreBudget): Promise<readonly KeyRecord[]>;
}
