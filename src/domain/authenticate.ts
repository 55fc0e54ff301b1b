/**
 * Who sends a request, from its `Authorization` header: `Bearer <key>`, nothing else. No header is an anonymous caller; a header that does
 * not hold a live key is refused everywhere, never served as anonymous. Known keys are answered from a cache without waiting: a key that was
 * found is looked up again after 3 s, one that was not after 1 s. While the store is away, a key that was found within ten minutes is still
 * believed; a decision can go on with it, whereas catalog work fails on the store itself.
 */
import type { StoreBudget } from '../stores/budget.ts';
import { createStoreBudget } from '../stores/budget.ts';
import { StoreUnavailable } from '../stores/errors.ts';
import type { KeyRecord, KeyStore } from '../stores/key-store.ts';
import { createBoundedMap } from './bounded-map.ts';
import type { Caller } from './callers.ts';
import { DomainError } from './errors.ts';
import type { Rate } from './gcra.ts';
import { judgeRate } from './gcra.ts';
import { hashKey, isKey, KEY_LENGTH } from './keys.ts';
import { wholeSeconds } from './limits.ts';
import { storeFailure } from './store-failures.ts';

export interface Authenticator {
  /**
   * The caller of a request: at once (no promise) for anonymous callers, junk and keys in the cache. `address` is from client-address.ts.
   *
   * Throws AUTHENTICATION_REQUIRED (param null) for anything but a live key, RATE_LIMIT_EXCEEDED for bad keys beyond 60 a minute from one
   * address, STORE_UNAVAILABLE when an unknown key cannot be looked up.
   */
  authenticate(authorization: string | undefined, address: string, budget?: StoreBudget): Caller | Promise<Caller>;
}

export interface AuthenticatorOptions {
  readonly keys: KeyStore;
  /** Whether bad keys from one address are limited. Off with UMPIRE_RATE_ANONYMOUS=off. */
  readonly limitBadKeys: boolean;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

const FOUND_MS = 3_000;
const ABSENT_MS = 1_000;
const BELIEVED_MS = 10 * 60_000;
const MAX_KEYS = 50_000;
const MAX_ADDRESSES = 50_000;
const BAD_KEYS: Rate = { perSecond: 1, burst: 60 };
/** Longer headers are not looked at: scheme, a few spaces, key. */
const MAX_HEADER = KEY_LENGTH + 64;
const BEARER = /^bearer +(?<token>[^\s]+) *$/i;

/** What is known of a hash. `at`: when the store said so. A store that is away moves `nextLook` alone. */
interface Known {
  readonly record: KeyRecord | undefined;
  readonly at: number;
  nextLook: number;
}

/** An authenticator over a key store. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const clock = options.clock ?? Date.now;
  const known = createBoundedMap<string, Known>({ bound: MAX_KEYS });
  const looking = new Map<string, Promise<Known>>();
  const badKeys = createBoundedMap<string, number>({ bound: MAX_ADDRESSES });

  return {
    authenticate(authorization, address, budget) {
      if (authorization === undefined) return { kind: 'anonymous', address };
      const token = authorization.length > MAX_HEADER ? undefined : BEARER.exec(authorization)?.groups?.token;
      if (token === undefined) throw bad(address, "Authorization must be 'Bearer <API key>'");
      if (!isKey(token)) throw bad(address, 'the API key is not valid');
      const hash = hashKey(token);
      const entry = known.get(hash);
      if (entry !== undefined && clock() < entry.nextLook) return judge(entry, address);
      return look(hash, budget ?? createStoreBudget()).then((found) => judge(found, address));
    },
  };

  function judge({ record }: Known, address: string): Caller {
    if (record === undefined) throw bad(address, 'the API key is not valid');
    if (record.endsAt !== undefined && record.endsAt <= clock()) throw bad(address, 'the API key was revoked');
    return { kind: 'key', owner: record.owner, keyId: record.keyId, address, limits: record.limits };
  }

  /** One look-up at a time for a key, however many requests wait for it. */
  function look(hash: string, budget: StoreBudget): Promise<Known> {
    const running = looking.get(hash);
    if (running !== undefined) return running;
    const started = clock();
    const lookup = options.keys
      .find(hash, budget)
      .then(
        (record) => {
          const entry: Known = {
            record,
            at: started,
            nextLook: started + (record === undefined ? ABSENT_MS : FOUND_MS),
          };
          known.set(hash, entry);
          return entry;
        },
        (error: unknown) => {
          const entry = known.get(hash);
          const believed =
            error instanceof StoreUnavailable && entry?.record !== undefined && started < entry.at + BELIEVED_MS;
          if (!believed) throw storeFailure(error);
          entry.nextLook = clock() + ABSENT_MS;
          return entry;
        },
      )
      .finally(() => looking.delete(hash));
    looking.set(hash, lookup);
    return lookup;
  }

  function bad(address: string, message: string): DomainError {
    if (options.limitBadKeys) {
      const now = clock();
      const verdict = judgeRate(BAD_KEYS, badKeys.get(address), now);
      if (verdict.kind === 'beyond') {
        return new DomainError('RATE_LIMIT_EXCEEDED', 'too many bad API keys from this address', {
          retryAfter: wholeSeconds(verdict.waitMs),
        });
      }
      badKeys.set(address, verdict.tat);
    }
    return authenticationRequired(message);
  }
}

/** The error of a missing or bad key; the message tells which. */
export function authenticationRequired(
  message = 'an API key is required: Authorization: Bearer <API key>',
): DomainError {
  return new DomainError('AUTHENTICATION_REQUIRED', message);
}
