/**
 * Who sends a request, by its `Authorization` header: `Bearer <key>`, nothing else. A request without the header comes
 * from an anonymous caller; one whose header does not hold a live key is refused everywhere, never served as anonymous.
 * Known keys are judged without waiting.
 *
 * Anybody can compute a key's checksum, so keys that pass it may still be junk: an address whose keys are not found is
 * allowed few look-ups.
 */
import { LRUCache } from 'lru-cache';
import { retryAfterOf } from '../engine/errors.ts';
import type { StoreBudget } from '../stores/budget.ts';
import type { KeyLimits, KeyRecord, KeyStore } from '../stores/key-store.ts';
import { StoreUnavailable } from '../stores/stores.ts';
import { DomainError } from './errors.ts';
import { faultOf } from './failures.ts';
import { judgeRate, type Rate } from './gcra.ts';
import { hashKey, isKey, KEY_LENGTH } from './keys.ts';

/** A caller without a key, told apart by address: an IPv4 address, or the /64 of an IPv6 address. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
  readonly address: string;
}

/** The holder of a valid key. Catalogs belong to the owner, limits to the key. */
export interface KeyedCaller {
  readonly kind: 'key';
  readonly owner: string;
  readonly keyId: string;
  readonly address: string;
  readonly limits: KeyLimits;
}

/** Who sends a request, with a key or without one. */
export type Caller = AnonymousCaller | KeyedCaller;

/** What an authenticator works with. Clocks are the system's unless a test brings its own. */
export interface AuthenticatorOptions {
  readonly keys: Pick<KeyStore, 'find'>;
  /** Whether bad keys from one address are limited. Off with UMPIRE_RATE_ANONYMOUS=off. */
  readonly limitBadKeys: boolean;
  /** Milliseconds since the epoch. Only the end of a key's grace time is judged by it, since it can be set back. */
  readonly wallClock?: () => number;
  /** Milliseconds on a clock that never goes back, by which everything else is judged. */
  readonly clock?: () => number;
}

/** The most addresses that are counted at a time. */
const MAX_ADDRESSES = 50_000;
/** Bad keys that an address may send before it is told to wait. */
const BAD_KEYS: Rate = { perSecond: 1, burst: 60 };
/**
 * Look-ups of keys that were not found. The burst lets many good keys arrive at once from one address: look-ups count
 * until they succeed.
 */
const UNKNOWN_KEYS: Rate = { perSecond: 10, burst: 256 };
/** Longer headers are not parsed: this has room for the scheme, some spaces and a key. */
const MAX_HEADER = KEY_LENGTH + 64;
const BEARER = /^bearer +(?<token>[^\s]+) *$/i;

/** Identifies the callers of requests by a key store. */
export class Authenticator {
  readonly #limitBadKeys: boolean;
  readonly #clock: () => number;
  readonly #wallClock: () => number;
  readonly #known: KnownKeys;
  readonly #badKeys = new AddressRate(BAD_KEYS);
  readonly #unknownKeys = new AddressRate(UNKNOWN_KEYS);

  constructor({ keys, limitBadKeys, clock = () => performance.now(), wallClock = Date.now }: AuthenticatorOptions) {
    this.#limitBadKeys = limitBadKeys;
    this.#clock = clock;
    this.#wallClock = wallClock;
    this.#known = new KnownKeys(keys, clock);
  }

  /**
   * The caller of a request: at once (no promise) for anonymous callers, junk and keys in the cache. `address`
   * is from client-address.ts.
   *
   * Throws AUTHENTICATION_REQUIRED (param null) for anything but a live key, RATE_LIMIT_EXCEEDED for bad keys beyond 60
   * a minute from one address and for look-ups of unknown keys beyond 10 a second from there, STORE_UNAVAILABLE when an
   * unknown key cannot be looked up.
   */
  authenticate(authorization: string | undefined, address: string, budget: StoreBudget): Caller | Promise<Caller> {
    if (authorization === undefined) return { kind: 'anonymous', address };
    const token = authorization.length > MAX_HEADER ? undefined : BEARER.exec(authorization)?.groups?.token;
    if (token === undefined) throw this.#bad(address, "Authorization must be 'Bearer <API key>'");
    if (!isKey(token)) throw this.#bad(address, 'the API key is not valid');
    const hash = hashKey(token);
    const now = this.#known.recall(hash);
    switch (now.kind) {
      case 'found':
        return this.#judge(now.record, address);
      case 'absent':
        throw this.#bad(address, 'the API key is not valid');
      case 'outdated':
        return this.#known.look(hash, budget).then((record) => this.#judge(record, address));
      case 'unknown':
        return this.#lookUnknown(hash, address, budget).then((record) => this.#judge(record, address));
    }
  }

  #judge(record: KeyRecord | undefined, address: string): Caller {
    if (record === undefined) throw this.#bad(address, 'the API key is not valid');
    if (record.endsAt !== undefined && record.endsAt <= this.#wallClock())
      throw this.#bad(address, 'the API key was revoked');
    return { kind: 'key', owner: record.owner, keyId: record.keyId, address, limits: record.limits };
  }

  /** Looks a key up and counts that for its address, unless the key is found or the store is unavailable. */
  async #lookUnknown(hash: string, address: string, budget: StoreBudget): Promise<KeyRecord | undefined> {
    if (!this.#limitBadKeys || this.#known.isLooking(hash)) return this.#known.look(hash, budget);
    const waitMs = this.#unknownKeys.take(address, this.#clock());
    if (waitMs !== undefined) throw tooManyBadKeys(waitMs);
    try {
      const record = await this.#known.look(hash, budget);
      if (record !== undefined) this.#unknownKeys.giveBack(address);
      return record;
    } catch (error) {
      this.#unknownKeys.giveBack(address);
      throw error;
    }
  }

  #bad(address: string, message: string): DomainError {
    const waitMs = this.#limitBadKeys ? this.#badKeys.take(address, this.#clock()) : undefined;
    return waitMs === undefined ? authenticationRequired(message) : tooManyBadKeys(waitMs);
  }
}

/** One rate, counted separately for a bounded number of addresses. */
class AddressRate {
  readonly #rate: Rate;
  readonly #tats = new LRUCache<string, number>({ maxSize: MAX_ADDRESSES, sizeCalculation: () => 1 });

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Counts one request: undefined if it is within the rate, else how many milliseconds it is too early. */
  take(address: string, now: number): number | undefined {
    const verdict = judgeRate(this.#rate, this.#tats.get(address), now);
    if (verdict.kind === 'beyond') return verdict.waitMs;
    this.#tats.set(address, verdict.tat);
    return undefined;
  }

  /** Takes one request back, which was not to be counted after all. */
  giveBack(address: string): void {
    const tat = this.#tats.get(address);
    if (tat !== undefined) this.#tats.set(address, tat - 1000 / this.#rate.perSecond);
  }
}

function tooManyBadKeys(waitMs: number): DomainError {
  return new DomainError('RATE_LIMIT_EXCEEDED', 'too many bad API keys from this address', {
    retryAfter: retryAfterOf(waitMs),
  });
}

/** The error of a missing or bad key; the message says which. */
export function authenticationRequired(
  message = 'an API key is required: Authorization: Bearer <API key>',
): DomainError {
  return new DomainError('AUTHENTICATION_REQUIRED', message);
}

// What the key store said of keys recently. A key that was found is looked up again after 3 s, one that was not after
// 1 s. While the store is unavailable, a key that was found within the last ten minutes is still believed; a decision
// can go on with it, whereas catalog work fails at the store itself. Keys that were not found are remembered apart from
// those that were, so that junk pushes no good key out.

/** What is known of a key: its record, that there is none, one that has to be looked up again, or nothing. */
type KnownKey =
  | { readonly kind: 'found'; readonly record: KeyRecord }
  | { readonly kind: 'absent' | 'outdated' | 'unknown' };

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

/** The known keys of a store by their hashes, none so far. */
class KnownKeys {
  readonly #keys: Pick<KeyStore, 'find'>;
  readonly #clock: () => number;
  readonly #found = new LRUCache<string, Found>({ maxSize: MAX_FOUND, sizeCalculation: () => 1 });
  /** When to look each of them up again. */
  readonly #absent = new LRUCache<string, number>({ maxSize: MAX_ABSENT, sizeCalculation: () => 1 });
  readonly #looking = new Map<string, Promise<KeyRecord | undefined>>();

  /** `clock`: milliseconds on a clock that never goes back. */
  constructor(keys: Pick<KeyStore, 'find'>, clock: () => number) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Says what is known without asking the store. */
  recall(hash: string): KnownKey {
    const entry = this.#found.get(hash);
    if (entry !== undefined)
      return this.#clock() < entry.nextLook ? { kind: 'found', record: entry.record } : { kind: 'outdated' };
    const nextLook = this.#absent.get(hash);
    return { kind: nextLook !== undefined && this.#clock() < nextLook ? 'absent' : 'unknown' };
  }

  /** Whether a look-up of the key is in progress. */
  isLooking(hash: string): boolean {
    return this.#looking.has(hash);
  }

  /**
   * Asks the store, once for all who wait. Resolves to undefined if there is no such key. @throws DomainError
   * STORE_UNAVAILABLE, unless the key is still believed.
   */
  look(hash: string, budget: StoreBudget): Promise<KeyRecord | undefined> {
    const running = this.#looking.get(hash);
    if (running !== undefined) return running;
    const lookup = this.#ask(hash, budget).finally(() => this.#looking.delete(hash));
    this.#looking.set(hash, lookup);
    return lookup;
  }

  async #ask(hash: string, budget: StoreBudget): Promise<KeyRecord | undefined> {
    const asked = this.#clock();
    try {
      const record = await this.#keys.find(hash, budget);
      this.#note(hash, record, asked);
      return record;
    } catch (error) {
      return this.#believed(hash, error, asked);
    }
  }

  #note(hash: string, record: KeyRecord | undefined, at: number): void {
    if (record === undefined) {
      this.#found.delete(hash);
      this.#absent.set(hash, at + ABSENT_MS);
    } else {
      this.#absent.delete(hash);
      this.#found.set(hash, { record, at, nextLook: at + FOUND_MS });
    }
  }

  /** The record that is believed while the store is unavailable. */
  #believed(hash: string, error: unknown, asked: number): KeyRecord {
    const entry = this.#found.get(hash);
    const holds = error instanceof StoreUnavailable && entry !== undefined && asked < entry.at + BELIEVED_MS;
    if (!holds) throw faultOf(error);
    entry.nextLook = this.#clock() + ABSENT_MS;
    return entry.record;
  }
}
