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
import type { KeyRecord, KeyStore } from '../stores/key-store.ts';
import type { Caller } from './callers.ts';
import { DomainError } from './errors.ts';
import { judgeRate, type Rate } from './gcra.ts';
import { hashKey, isKey, KEY_LENGTH } from './keys.ts';
import { createKnownKeys } from './known-keys.ts';

/** Identifies the callers of requests. */
export interface Authenticator {
  /**
   * The caller of a request: at once (no promise) for anonymous callers, junk and keys in the cache. `address`
   * is from client-address.ts.
   *
   * Throws AUTHENTICATION_REQUIRED (param null) for anything but a live key, RATE_LIMIT_EXCEEDED for bad keys beyond 60
   * a minute from one address and for look-ups of unknown keys beyond 10 a second from there, STORE_UNAVAILABLE when an
   * unknown key cannot be looked up.
   */
  authenticate(authorization: string | undefined, address: string, budget: StoreBudget): Caller | Promise<Caller>;
}

/** What an authenticator works with. Clocks are the system's unless a test brings its own. */
export interface AuthenticatorOptions {
  readonly keys: KeyStore;
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

/** An authenticator over a key store. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const clock = options.clock ?? (() => performance.now());
  const wallClock = options.wallClock ?? Date.now;
  const known = createKnownKeys(options.keys, clock);
  const badKeys = createAddressRate(BAD_KEYS);
  const unknownKeys = createAddressRate(UNKNOWN_KEYS);

  return {
    authenticate(authorization, address, budget) {
      if (authorization === undefined) return { kind: 'anonymous', address };
      const token = authorization.length > MAX_HEADER ? undefined : BEARER.exec(authorization)?.groups?.token;
      if (token === undefined) throw bad(address, "Authorization must be 'Bearer <API key>'");
      if (!isKey(token)) throw bad(address, 'the API key is not valid');
      const hash = hashKey(token);
      const now = known.recall(hash);
      switch (now.kind) {
        case 'found':
          return judge(now.record, address);
        case 'absent':
          throw bad(address, 'the API key is not valid');
        case 'outdated':
          return known.look(hash, budget).then((record) => judge(record, address));
        case 'unknown':
          return lookUnknown(hash, address, budget).then((record) => judge(record, address));
      }
    },
  };

  function judge(record: KeyRecord | undefined, address: string): Caller {
    if (record === undefined) throw bad(address, 'the API key is not valid');
    if (record.endsAt !== undefined && record.endsAt <= wallClock()) throw bad(address, 'the API key was revoked');
    return { kind: 'key', owner: record.owner, keyId: record.keyId, address, limits: record.limits };
  }

  /** Looks a key up and counts that for its address, unless the key is found or the store is unavailable. */
  async function lookUnknown(hash: string, address: string, budget: StoreBudget): Promise<KeyRecord | undefined> {
    if (!options.limitBadKeys || known.isLooking(hash)) return known.look(hash, budget);
    const waitMs = unknownKeys.take(address, clock());
    if (waitMs !== undefined) throw tooManyBadKeys(waitMs);
    try {
      const record = await known.look(hash, budget);
      if (record !== undefined) unknownKeys.giveBack(address);
      return record;
    } catch (error) {
      unknownKeys.giveBack(address);
      throw error;
    }
  }

  function bad(address: string, message: string): DomainError {
    const waitMs = options.limitBadKeys ? badKeys.take(address, clock()) : undefined;
    return waitMs === undefined ? authenticationRequired(message) : tooManyBadKeys(waitMs);
  }
}

/** One rate, counted separately for a bounded number of addresses. */
function createAddressRate(rate: Rate) {
  const tats = new LRUCache<string, number>({ maxSize: MAX_ADDRESSES, sizeCalculation: () => 1 });
  return {
    /** Counts one request: undefined if it is within the rate, else how many milliseconds it is too early. */
    take(address: string, now: number): number | undefined {
      const verdict = judgeRate(rate, tats.get(address), now);
      if (verdict.kind === 'beyond') return verdict.waitMs;
      tats.set(address, verdict.tat);
      return undefined;
    },
    /** Takes one request back, which was not to be counted after all. */
    giveBack(address: string): void {
      const tat = tats.get(address);
      if (tat !== undefined) tats.set(address, tat - 1000 / rate.perSecond);
    },
  };
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
