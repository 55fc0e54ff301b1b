/**
 * The inference calls to one server: the rows of a decision are divided among requests, which are bounded in number,
 * bytes and time, made again where that is safe, and counted.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { CallOutcome, InferenceCalls } from '../../engine.ts';
import type { RunControl } from '../family.ts';
import { CallFailed } from './call-failed.ts';
import { createSemaphore } from './semaphore.ts';

/** For whom calls are made and until when, and the part of the process's cache that the caller may learn about. */
export type JobCall = Pick<RunControl, 'signal' | 'deadline' | 'vectors'>;

/** How a call may end early. */
export interface CallTerms {
  readonly signal: AbortSignal;
  /** Milliseconds that the server has to answer. */
  readonly within: number;
}

/** Bounds of what is under way at a server. */
export interface CallBounds {
  readonly requests: number;
  readonly bytes: number;
  /** Milliseconds that one request may take. */
  readonly timeoutMs: number;
}

/** How much of the bounds a call takes while it is under way. */
export interface CallSize {
  readonly rows: number;
  readonly bytes: number;
}

/** Makes the calls to one server within the bounds, and counts them. */
export interface Calls {
  /**
   * Makes a call by `once`, and a second time if the first ended as `unavailable`. Rejects with CallFailed, or what
   * `once` throws.
   */
  make<T>(size: CallSize, job: JobCall, once: (terms: CallTerms) => Promise<T>): Promise<T>;
  /** The counts since this was last called; undefined if there are none. */
  takeCounts(): InferenceCalls | undefined;
}

/** The least wait before a call is made again, milliseconds; up to as much again is added at random. */
const RETRY_WAIT = 20;

const NO_OUTCOMES: Readonly<Record<CallOutcome, number>> = {
  answered: 0,
  unavailable: 0,
  refused: 0,
  malformed: 0,
  timed_out: 0,
  canceled: 0,
};

/** No calls under way at first. `unreachable` is told of each call that ends as `unavailable`. */
export function createCalls(bounds: CallBounds, unreachable: () => void): Calls {
  const semaphore = createSemaphore(bounds);
  const throttle = createRetryThrottle();
  let outcomes = { ...NO_OUTCOMES };
  let counts = { rows: 0, retries: 0, seconds: 0 };

  const attempt = async <T>(
    { rows }: CallSize,
    { signal, deadline }: JobCall,
    once: (terms: CallTerms) => Promise<T>,
  ): Promise<T> => {
    const began = performance.now();
    const within = Math.min(bounds.timeoutMs, deadline - began);
    if (within <= 0) throw new CallFailed('timed_out', 'its time was up before it was sent');
    try {
      const found = await once({ signal, within });
      outcomes.answered++;
      counts.rows += rows;
      counts.seconds += (performance.now() - began) / 1000;
      throttle.succeeded();
      return found;
    } catch (error) {
      if (error instanceof CallFailed) outcomes[error.outcome]++;
      throw error;
    }
  };

  /** Whether a call may be made again; resolves after the wait that it takes. */
  const mayRetry = async (error: unknown, { signal, deadline }: JobCall): Promise<boolean> => {
    // Nothing else is safe to make again: the server may still be at work on the first call. Even if it is at work
    // after this outcome, no harm is done, since scoring has no effects.
    if (!(error instanceof CallFailed) || error.outcome !== 'unavailable') return false;
    const wait = Math.max(RETRY_WAIT * (1 + Math.random()), error.retryAfter ?? 0);
    if (!throttle.failed() || performance.now() + wait >= deadline) return false;
    counts.retries++;
    // If the caller leaves meanwhile, the second call ends at once.
    await delay(wait, undefined, { signal }).catch(() => {});
    return true;
  };

  return {
    async make(size, job, once) {
      const leave = await semaphore.enter(size.bytes, job.signal).catch(() => {
        throw new CallFailed('canceled', 'nobody waits for it any more');
      });
      try {
        return await attempt(size, job, once).catch(async (error: unknown) => {
          if (await mayRetry(error, job)) return await attempt(size, job, once);
          throw error;
        });
      } catch (error) {
        if (error instanceof CallFailed && error.outcome === 'unavailable') unreachable();
        throw error;
      } finally {
        leave();
      }
    },
    takeCounts() {
      if (Object.values(outcomes).every((count) => count === 0)) return undefined;
      const taken = { outcomes, ...counts };
      outcomes = { ...NO_OUTCOMES };
      counts = { rows: 0, retries: 0, seconds: 0 };
      return taken;
    },
  };
}

/** Bounds of one request. */
export interface RequestBounds {
  readonly rows: number;
  /** The bytes of its rows together. */
  readonly messageBytes: number;
}

/**
 * Puts places one after another into batches within the bounds; `bytesOf` is what a place takes in a request. One that
 * alone takes more than a request may hold is a batch of its own. The same places always make the same batches.
 */
export function batchesWithin(
  places: Iterable<number>,
  bytesOf: (place: number) => number,
  bounds: RequestBounds,
): readonly (readonly number[])[] {
  const batches: number[][] = [];
  let batch: number[] = [];
  let bytes = 0;
  for (const place of places) {
    const size = bytesOf(place);
    if (batch.length > 0 && (batch.length === bounds.rows || bytes + size > bounds.messageBytes)) {
      batches.push(batch);
      batch = [];
      bytes = 0;
    }
    batch.push(place);
    bytes += size;
  }
  return batch.length === 0 ? batches : [...batches, batch];
}

/**
 * Does all parts of a job at the same time. When one fails the others are given up, and once all have ended the first
 * failure is thrown.
 */
export async function allTogether<P, R>(
  parts: readonly P[],
  call: JobCall,
  once: (part: P, call: JobCall) => Promise<R>,
): Promise<readonly R[]> {
  const others = new AbortController();
  const both = AbortSignal.any([call.signal, others.signal]);
  const failures: unknown[] = [];
  const ended = await Promise.all(
    parts.map(async (part) => {
      try {
        return { result: await once(part, { ...call, signal: both }) };
      } catch (error) {
        failures.push(error);
        others.abort();
        return undefined;
      }
    }),
  );
  if (failures.length > 0) throw failures[0];
  return ended.map((each) => (each as { readonly result: R }).result);
}

/**
 * Limits how many calls are made again: a store of tokens as in gRPC's own throttling of retries (gRFC A6). A failure
 * takes one, a success gives a tenth back, and while half of them or less are left, no call is made again: retries must
 * not add to the load of a server in trouble.
 */
export interface RetryThrottle {
  succeeded(): void;
  /** Takes note of a failure. Returns whether the call may be made again. */
  failed(): boolean;
}

/** Tokens of the store, and how many a success gives back: the values of the examples in gRFC A6. */
const CAPACITY = 10;
const GAIN = 0.1;

/** A throttle with all its tokens. */
export function createRetryThrottle(): RetryThrottle {
  let tokens = CAPACITY;
  return {
    succeeded() {
      tokens = Math.min(CAPACITY, tokens + GAIN);
    },
    failed() {
      tokens = Math.max(0, tokens - 1);
      return tokens > CAPACITY / 2;
    },
  };
}
