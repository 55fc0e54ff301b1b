/**
 * The way to the thread that writes: orders go in, acknowledgements come back. One that died is replaced by
 * the next write.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { type StoreBudget, spend } from '../budget.ts';
import { StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../errors.ts';
import type { Write, WriteResult } from './writes.ts';

/** One write on its way. `deadline`: when it may no longer begin, by `sharedNow`. */
export interface Order {
  readonly number: number;
  readonly deadline: number;
  readonly write: Write;
}

/** What came of an order; `READY` is what the thread says first. */
export interface Acknowledgement {
  readonly number: number;
  readonly outcome:
    | { readonly kind: 'done'; readonly result: WriteResult }
    | { readonly kind: 'unavailable' | 'corrupt'; readonly message: string };
}

/**
 * Milliseconds on the one clock that all threads of a process share and that nobody can set: `performance.now()`
 * begins anew in each.
 */
export function sharedNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The number of no order: the thread has opened the database. */
export const READY = -1;

/** Hands writes to the thread that makes them, and waits for the disk. */
export interface WriteQueue {
  /**
   * Makes one write; on the disk when it resolves. Throws StoreUnavailable or StoreCorrupt if it was not made,
   * StoreWriteUnconfirmed if that is not known, because the disk took too long or the thread died.
   */
  write(budget: StoreBudget, write: Write): Promise<WriteResult>;
  /** Resolves when the thread is there. Rejects with StoreUnavailable if it cannot be. */
  opened(): Promise<void>;
  /** Waits for what is under way, and ends the thread. */
  close(): Promise<void>;
}

/**
 * How long a write may wait for its turn, however small its budget, and then for the disk. Giving up on the
 * machine's own disk would make nothing faster and leave the caller not knowing, so this is more than a request
 * waits for a server elsewhere.
 */
const TURN_MS = 1_000;
const DISK_MS = 4_000;

/** A queue for one database file. */
export function createWriteQueue(file: string): WriteQueue {
  const waiting = new Map<number, PromiseWithResolvers<WriteResult>>();
  const opened = Promise.withResolvers<void>();
  // Whoever does not wait for it hears of it with the first write.
  opened.promise.catch(() => {});
  let numbers = 0;
  let thread: Worker | undefined = start();

  return {
    write(budget, write) {
      return spend(budget, async () => {
        if (budget.remaining <= 0) throw new StoreUnavailable('the time for store work is used up');
        thread ??= start();
        const number = numbers++;
        const acknowledged = Promise.withResolvers<WriteResult>();
        waiting.set(number, acknowledged);
        thread.ref();
        const turn = Math.max(budget.remaining, TURN_MS);
        thread.postMessage({ number, deadline: sharedNow() + turn, write } satisfies Order);
        const timer = setTimeout(() => {
          acknowledged.reject(new StoreWriteUnconfirmed('the disk did not confirm the write in time'));
        }, turn + DISK_MS);
        try {
          return await acknowledged.promise;
        } finally {
          clearTimeout(timer);
          waiting.delete(number);
          // An idle thread keeps no process alive.
          if (waiting.size === 0) thread?.unref();
        }
      });
    },
    opened: () => opened.promise,
    async close() {
      while (waiting.size > 0) await sleep(5);
      await thread?.terminate();
    },
  };

  function start(): Worker {
    const started = new Worker(new URL('./write-thread.ts', import.meta.url), { workerData: { file } });
    started.on('message', ({ number, outcome }: Acknowledgement) => {
      if (number === READY) {
        opened.resolve();
        if (waiting.size === 0) started.unref();
      }
      const order = waiting.get(number);
      if (outcome.kind === 'done') order?.resolve(outcome.result);
      else if (outcome.kind === 'corrupt') order?.reject(new StoreCorrupt(outcome.message));
      else order?.reject(new StoreUnavailable(outcome.message));
    });
    started.on('error', (cause) => lose(started, cause));
    started.on('exit', () => lose(started, undefined));
    return started;
  }

  /** The thread is gone; the next write starts another. */
  function lose(lost: Worker, cause: unknown): void {
    if (lost !== thread) return;
    thread = undefined;
    opened.reject(new StoreUnavailable('the thread that writes did not start', { cause }));
    for (const order of waiting.values()) {
      order.reject(new StoreWriteUnconfirmed('the thread that writes ended', cause === undefined ? {} : { cause }));
    }
  }
}
