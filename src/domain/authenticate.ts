/**
 * Who sends a request, from its `Authorization` header: `Bearer <key>`, nothing else. No header is an anonymous caller;
 * a header that does not hold a live key is refused everywhere, never served as anonymous. Known keys are answered from
 * a cache without waiting: a key that was found is looked up again after 3 s, one that was not after 1 s. While the
 * store is away, a key that was found within ten minutes is still believed; a decision can go on with it, whereas
 * catalog work fails on the store itself.
 *
 * The check sum of a key costs nothing to make, so keys that pass it may still be junk. What was not found is
 * remembered apart from what was, and an address whose keys are not found may ask for few more look-ups: junk neither
 * pushes a good key out nor makes the store work.
 */
import { LRUCache } from 'lru-cache';
import { retryAfterOf } from '../engine/errors.ts';
import type { StoreBudget } from '../stores/budget.ts';
import { StoreUnavailable } from '../stores/errors.ts';
import type { KeyRecord, KeyStore } from '../stores/key-store.ts';
import type { Caller } from './callers.ts';
import { DomainError } from './errors.ts';
import type { Rate } from './gcra.ts';
import { judgeRate } from './gcra.ts';
import { hashKey, isKey, KEY_LENGTH } from './keys.ts';
import { storeFailure } from './store-failures.ts';

/** Tells who sends a request. */
export interface Authenticator {
  /**
   * The caller of a request: at once (no promise) for anonymous callers, junk and keys in the cache. `address` is from
   * client-address.ts.
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
  /** Milliseconds since the epoch: only the end of a key's grace time is told by it, since it can be set back. */
  readonly wallClock?: () => number;
  /** Milliseconds on a clock that never goes back. Everything else is told by it. */
  readonly clock?: () => number;
}

const FOUND_MS = 3_000;
const ABSENT_MS = 1_000;
const BELIEVED_MS = 10 * 60_000;
const MAX_FOUND = 50_000;
const MAX_ABSENT = 10_000;
const MAX_ADDRESSES = 50_000;
const BAD_KEYS: Rate = { perSecond: 1, burst: 60 };
/**
 * Look-ups of keys that were not found. The burst is for many good keys at once behind one address: those that are
 * found do not count.
 */
const UNKNOWN_KEYS: Rate = { perSecond: 10, burst: 256 };
/** Longer headers are not looked at: scheme, a few spaces, key. */
const MAX_HEADER = KEY_LENGTH + 64;
const BEARER = /^bearer +(?<token>[^\s]+) *$/i;

/** A key that was found. `at`: when the store said so. A store that is away moves `nextLook` alone. */
interface Found {
  readonly record: KeyRecord;
  readonly at: number;
  nextLook: number;
}

/** An authenticator over a key store. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const clock = options.clock ?? (() => performance.now());
  const wallClock = options.wallClock ?? Date.now;
  const found = new LRUCache<string, Found>({ maxSize: MAX_FOUND, sizeCalculation: () => 1 });
  // The values are when to look again.
  const absent = new LRUCache<string, number>({ maxSize: MAX_ABSENT, sizeCalculation: () => 1 });
  const looking = new Map<string, Promise<KeyRecord | undefined>>();
  const badKeys = createAddressRate(BAD_KEYS);
  const unknownKeys = createAddressRate(UNKNOWN_KEYS);

  return {
    authenticate(authorization, address, budget) {
      if (authorization === undefined) return { kind: 'anonymous', address };
      const token = authorization.length > MAX_HEADER ? undefined : BEARER.exec(authorization)?.groups?.token;
      if (token === undefined) throw bad(address, "Authorization must be 'Bearer <API key>'");
      if (!isKey(token)) throw bad(address, 'the API key is not valid');
      const hash = hashKey(token);
      const entry = found.get(hash);
      if (entry === undefined) {
        const nextLook = absent.get(hash);
        if (nextLook !== undefined && clock() < nextLook) throw bad(address, 'the API key is not valid');
        return lookUnknown(hash, address, budget).then((record) => judge(record, address));
      }
      if (clock() < entry.nextLook) return judge(entry.record, address);
      return look(hash, budget).then((record) => judge(record, address));
    },
  };

  function judge(record: KeyRecord | undefined, address: string): Caller {
    if (record === undefined) throw bad(address, 'the API key is not valid');
    if (record.endsAt !== undefined && record.endsAt <= wallClock()) throw bad(address, 'the API key was revoked');
    return { kind: 'key', owner: record.owner, keyId: record.keyId, address, limits: record.limits };
  }

  /** A look-up that counts for its address until the key turns out to be there, or the store to be away. */
  async function lookUnknown(hash: string, address: string, budget: StoreBudget): Promise<KeyRecord | undefined> {
    if (!options.limitBadKeys || looking.has(hash)) return look(hash, budget);
    const waitMs = unknownKeys.take(address, clock());
    if (waitMs !== undefined) throw tooManyBadKeys(waitMs);
    try {
      const record = await look(hash, budget);
      if (record !== undefined) unknownKeys.giveBack(address);
      return record;
    } catch (error) {
      unknownKeys.giveBack(address);
      throw error;
    }
  }

  /** One look-up at a time for a key, however many requests wait for it. */
  function look(hash: string, budget: StoreBudget): Promise<KeyRecord | undefined> {
    const running = looking.get(hash);
    if (running !== undefined) return running;
    const started = clock();
    const lookup = options.keys
      .find(hash, budget)
      .then(
        (record) => {
          if (record === undefined) {
            found.delete(hash);
            absent.set(hash, started + ABSENT_MS);
          } else {
            absent.delete(hash);
            found.set(hash, { record, at: started, nextLook: started + FOUND_MS });
          }
          return record;
        },
        (error: unknown) => {
          const entry = found.get(hash);
          const believed = error instanceof StoreUnavailable && entry !== undefined && started < entry.at + BELIEVED_MS;
          if (!believed) throw storeFailure(error);
          entry.nextLook = clock() + ABSENT_MS;
          return entry.record;
        },
      )
      .finally(() => looking.delete(hash));
    looking.set(hash, lookup);
    return lookup;
  }

  function bad(address: string, message: string): DomainError {
    const waitMs = options.limitBadKeys ? badKeys.take(address, clock()) : undefined;
    return waitMs === undefined ? authenticationRequired(message) : tooManyBadKeys(waitMs);
  }
}

/** A rate for each address, of a bounded number of addresses. */
function createAddressRate(rate: Rate) {
  const tats = new LRUCache<string, number>({ maxSize: MAX_ADDRESSES, sizeCalculation: () => 1 });
  return {
    /** Takes one; undefined, or how many milliseconds it is too early. */
    take(address: string, now: number): number | undefined {
      const verdict = judgeRate(rate, tats.get(address), now);
      if (verdict.kind === 'beyond') return verdict.waitMs;
      tats.set(address, verdict.tat);
      return undefined;
    },
    /** What was taken did not count after all. */
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

/** The error of a missing or bad key; the message tells which. */
export function authenticationRequired(
  message = 'an API key is required: Authorization: Bearer <API key>',
): DomainError {
  return new DomainError('AUTHENTICATION_REQUIRED', message);
}
