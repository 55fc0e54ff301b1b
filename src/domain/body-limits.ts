/**
 * Bytes of request bodies, counted beside requests: reading them is what most requests cost this process. Each address
 * or key has a bucket, and all together have one, of which callers without a key may use a part only. Counted in this
 * process, also where limits are shared by replicas: it is this process's time that is kept.
 */
import { LRUCache } from 'lru-cache';
import type { Caller } from './callers.ts';
import { DomainError } from './errors.ts';
import type { Rate } from './gcra.ts';

/** MiB of bodies, sustained and at once; `'off'` is no limit. */
export interface BodyRates {
  readonly anonymous: Rate | 'off';
  readonly key: Rate | 'off';
  readonly all: Rate | 'off';
}

/** Counts bytes that arrived, or 0 before any do. The fault, if they are too many. */
export type BodyMeter = (bytes: number) => DomainError | undefined;

/** The counters of body bytes of all callers. */
export interface BodyLimits {
  meter(caller: Caller): BodyMeter;
}

/** Callers that are counted at one time; past it the ones that were idle longest are forgotten. */
const MAX_SUBJECTS = 100_000;
/** Callers without a key may use this part of what all have together. */
const ANONYMOUS_SHARE = 0.8;
const MIB = 1024 * 1024;

/** A bucket: when what was taken is worked off, on the clock. */
interface Bucket {
  until: number;
}

/** Empty buckets. `clock`: milliseconds, never set back. */
export function createBodyLimits(rates: BodyRates, clock: () => number = () => performance.now()): BodyLimits {
  const buckets = new LRUCache<string, Bucket>({ maxSize: MAX_SUBJECTS, sizeCalculation: () => 1 });
  const all: Bucket = { until: 0 };

  /** Milliseconds until the bucket has room, `share` of it being the caller's; 0 if it has. One chunk may go beyond. */
  const take = (bucket: Bucket, rate: Rate | 'off', share: number, bytes: number): number => {
    if (rate === 'off') return 0;
    const now = clock();
    const taken = Math.max(0, bucket.until - now);
    const room = (share * rate.burst * 1000) / rate.perSecond;
    if (taken >= room) return Math.max(1, taken - room);
    bucket.until = now + taken + (bytes / MIB / rate.perSecond) * 1000;
    return 0;
  };

  return {
    meter(caller) {
      const keyed = caller.kind === 'key';
      const subject = keyed ? `key ${caller.keyId}` : `address ${caller.address}`;
      return (bytes) => {
        const bucket = buckets.get(subject) ?? { until: 0 };
        const own = take(bucket, rates[caller.kind], 1, bytes);
        if (own > 0) {
          return new DomainError('RATE_LIMIT_EXCEEDED', 'too many bytes in request bodies', {
            retryAfter: Math.ceil(own / 1000),
          });
        }
        buckets.set(subject, bucket);
        const wait = take(all, rates.all, keyed ? 1 : ANONYMOUS_SHARE, bytes);
        if (wait === 0) return undefined;
        return new DomainError('OVERLOADED', 'more bytes arrive than this process can read in time; try again later', {
          retryAfter: Math.ceil(wait / 1000),
        });
      };
    },
  };
}
