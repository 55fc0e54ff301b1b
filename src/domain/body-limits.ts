/**
 * Limits on the bytes of bodies, of requests and of answers, in addition to those on requests: bodies are what most
 * requests cost this process. Each address or key has a bucket, and all callers together have one, of which those
 * without a key may use only a part. Bytes are counted in this process even where replicas share limits: they cost this
 * process's time.
 */
import { LRUCache } from 'lru-cache';
import type { Caller } from './authenticate.ts';
import { DomainError } from './errors.ts';
import type { Rate } from './gcra.ts';
import { parseRate } from './limit-settings.ts';
import { setting, type ValuesOf } from './settings.ts';

/** Rates in MiB of bodies, sustained and at once; `'off'` is no limit. */
export interface BodyRates {
  readonly anonymous: Rate | 'off';
  readonly key: Rate | 'off';
  readonly all: Rate | 'off';
}

/** The most callers that are counted at a time; beyond it those that were idle longest are forgotten. */
const MAX_SUBJECTS = 100_000;
/** Callers without a key may use this part of what all have together. */
const ANONYMOUS_SHARE = 0.8;
const MIB = 1024 * 1024;

/** A token bucket, kept as the time on the clock at which it is full again. */
interface Bucket {
  until: number;
}

/** The counters of body bytes of all callers, of which nothing is used yet. */
export class BodyLimits {
  readonly #rates: BodyRates;
  readonly #clock: () => number;
  readonly #what: 'requests' | 'answers';
  readonly #buckets = new LRUCache<string, Bucket>({ maxSize: MAX_SUBJECTS, sizeCalculation: () => 1 });
  readonly #all: Bucket = { until: 0 };

  /** `what`: whose bodies they are; `clock`: milliseconds, never set back. */
  constructor(rates: BodyRates, what: 'requests' | 'answers', clock: () => number = () => performance.now()) {
    this.#rates = rates;
    this.#what = what;
    this.#clock = clock;
  }

  /** Counts bytes of a caller, or 0 to ask before there are any. Returns the fault if there are too many. */
  count(caller: Caller, bytes: number): DomainError | undefined {
    const keyed = caller.kind === 'key';
    const subject = keyed ? `key ${caller.keyId}` : `address ${caller.address}`;
    const bucket = this.#buckets.get(subject) ?? { until: 0 };
    const own = this.#take(bucket, this.#rates[caller.kind], 1, bytes);
    if (own > 0) {
      return new DomainError('RATE_LIMIT_EXCEEDED', `too many bytes in the bodies of ${this.#what}`, {
        retryAfter: Math.ceil(own / 1000),
      });
    }
    this.#buckets.set(subject, bucket);
    const wait = this.#take(this.#all, this.#rates.all, keyed ? 1 : ANONYMOUS_SHARE, bytes);
    if (wait === 0) return undefined;
    const message = `the ${this.#what} have more bytes than this process can handle in time; try again later`;
    return new DomainError('OVERLOADED', message, { retryAfter: Math.ceil(wait / 1000) });
  }

  /** Takes bytes and returns 0, or returns the milliseconds until `share` has room, which the last chunk may exceed. */
  #take(bucket: Bucket, rate: Rate | 'off', share: number, bytes: number): number {
    if (rate === 'off') return 0;
    const now = this.#clock();
    const taken = Math.max(0, bucket.until - now);
    const room = (share * rate.burst * 1000) / rate.perSecond;
    if (taken >= room) return Math.max(1, taken - room);
    bucket.until = now + taken + (bytes / MIB / rate.perSecond) * 1000;
    return 0;
  }
}

/** Counts the bytes of one caller's bodies. */
export class BodyMeter {
  readonly #limits: BodyLimits;
  readonly #caller: Caller;

  constructor(limits: BodyLimits, caller: Caller) {
    this.#limits = limits;
    this.#caller = caller;
  }

  /** See `BodyLimits.count`. */
  count(bytes: number): DomainError | undefined {
    return this.#limits.count(this.#caller, bytes);
  }
}

/**
 * Rates in MiB: 1 MiB takes this process some milliseconds, so that all callers keep it busy a fifth of the time.
 */
export const BODY_SETTINGS = {
  UMPIRE_BODIES_ANONYMOUS: setting(
    '4/s, burst 32',
    parseRate,
    'MiB of request bodies of one address without a key, and as many of answers, or `off`',
  ),
  UMPIRE_BODIES_KEY: setting(
    '16/s, burst 64',
    parseRate,
    'MiB of request bodies of one key, and as many of answers, or `off`',
  ),
  UMPIRE_BODIES_ALL: setting(
    '32/s, burst 128',
    parseRate,
    'MiB of request bodies of all callers together, and as many of answers, of which those without a key get at most four fifths, or `off`',
  ),
};

/** The rates that those settings state. */
export function bodyRatesOf(values: ValuesOf<typeof BODY_SETTINGS>): BodyRates {
  return {
    anonymous: values.UMPIRE_BODIES_ANONYMOUS,
    key: values.UMPIRE_BODIES_KEY,
    all: values.UMPIRE_BODIES_ALL,
  };
}
