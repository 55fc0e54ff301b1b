/**
 * The inference calls that a decision makes: for whom, how large, how its rows are divided among them, and how many are
 * under way at a time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TokensUsed } from '../../engine.ts';
import { JobStopped, type RunControl } from '../family.ts';

/** For whom calls are made and until when, and the part of the process's cache that the caller may learn about. */
export type InferenceJob = Pick<RunControl, 'signal' | 'deadline' | 'vectors'>;

/** How a call may end early. */
export interface InferenceTerms {
  readonly signal: AbortSignal;
  /** Milliseconds that the server has to answer. */
  readonly within: number;
  /** Hears what the server says an answer took, whatever becomes of it. */
  used?(tokens: TokensUsed): void;
}

/** Bounds of what is under way at a server. */
export interface CallBounds {
  readonly requests: number;
  readonly bytes: number;
  /** Milliseconds that one request may take. */
  readonly timeoutMs: number;
}

/** Counts of calls, none yet. */
export const noCalls = () => ({
  outcomes: { answered: 0, unavailable: 0, refused: 0, malformed: 0, timed_out: 0, canceled: 0 },
  rows: 0,
  retries: 0,
  seconds: 0,
  tokens: { in: 0, out: 0 },
});

/** How much of the bounds a call takes while it is under way. */
export interface CallSize {
  readonly rows: number;
  readonly bytes: number;
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
 * Does batches of rows at the same time, as `allTogether` does. `once` resolves to a result for each place of a batch,
 * in their order.
 */
export async function inBatches<R>(
  batches: readonly (readonly number[])[],
  call: InferenceJob,
  once: (places: readonly number[], call: InferenceJob) => Promise<ArrayLike<R>>,
): Promise<readonly R[]> {
  const results: R[] = [];
  await allTogether(batches, call, async (places, part) => {
    const found = await once(places, part);
    for (const [i, place] of places.entries()) results[place] = found[i] as R;
  });
  return results;
}

/**
 * Does all parts of a job at the same time. When one fails the others are given up, and once all have ended the first
 * failure is thrown.
 */
export async function allTogether<P, R>(
  parts: readonly P[],
  call: InferenceJob,
  once: (part: P, call: InferenceJob) => Promise<R>,
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

/** The longest that work may go on without a pause, milliseconds. */
const LONGEST = 8;

/**
 * What `make` makes of each item, with pauses in between in which other decisions, cancellations and reports of
 * progress get their turn; `make` may call `pause` within an item. Rejects with JobStopped when the job is no longer
 * wanted.
 */
export async function paced<T, R>(
  items: readonly T[],
  { signal }: Pick<InferenceJob, 'signal'>,
  make: (item: T, pause: () => Promise<void>) => R | Promise<R>,
): Promise<readonly R[]> {
  let since = performance.now();
  const pause = async (): Promise<void> => {
    if (performance.now() - since >= LONGEST) {
      await nextTurn();
      since = performance.now();
    }
    if (signal.aborted) throw new JobStopped();
  };
  const made: R[] = [];
  for (const item of items) {
    made.push(await make(item, pause));
    await pause();
  }
  return made;
}

interface Waiting {
  readonly bytes: number;
  admit(): void;
}

/**
 * A bound on what is under way at a server, in requests and bytes; nothing is at first. Waiting calls are let in in the
 * order of their arrival.
 */
export class Semaphore {
  readonly #most: { readonly requests: number; readonly bytes: number };
  readonly #waiting: Waiting[] = [];
  #inside = 0;
  #bytes = 0;

  constructor(most: { readonly requests: number; readonly bytes: number }) {
    this.#most = most;
  }

  /** How many calls are inside. */
  get inside(): number {
    return this.#inside;
  }

  /**
   * Resolves when there is room, with a function that gives it back. A single item larger than all bytes is let in when
   * nothing else is under way. Rejects with the signal's reason.
   */
  async enter(bytes: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#waiting.length === 0 && this.#hasRoom(bytes)) return this.#take(bytes);
    return await new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal.reason);
      };
      const entry: Waiting = {
        bytes,
        admit: () => {
          signal.removeEventListener('abort', giveUp);
          resolve(this.#take(bytes));
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(entry);
    });
  }

  #hasRoom(bytes: number): boolean {
    return this.#inside === 0 || (this.#inside < this.#most.requests && this.#bytes + bytes <= this.#most.bytes);
  }

  #take(bytes: number): () => void {
    this.#inside++;
    this.#bytes += bytes;
    return () => {
      this.#inside--;
      this.#bytes -= bytes;
      for (let next = this.#waiting[0]; next !== undefined && this.#hasRoom(next.bytes); next = this.#waiting[0]) {
        this.#waiting.shift();
        next.admit();
      }
    };
  }
}
