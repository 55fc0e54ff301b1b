/**
 * Passes writes to the thread that makes them: orders go in, acknowledgements come back. A thread that died is replaced
 * at the next write.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { type StoreBudget, spend } from '../budget.ts';
import { StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../stores.ts';

/** Values by their names in a statement. */
type Row = Readonly<Record<string, string | number | null>>;

/** One write, as data that can be sent to the thread: a statement, which is run for each row. */
export interface Write {
  readonly sql: string;
  readonly rows: readonly Row[];
  /** A query about the state before the write, with the values of its first row. */
  readonly before?: string;
  /** Whether it only takes room, or, like the last use of keys, is not worth the reserve. */
  readonly grows?: boolean;
}

/** How many records a write changed, and what the query found before it. */
export interface WriteResult {
  readonly changes: number;
  readonly before?: Readonly<Record<string, unknown>> | undefined;
}

/** One write for the thread. `deadline`: after it the write must not begin, on the clock of `sharedNow()`. */
export interface Order {
  readonly number: number;
  readonly deadline: number;
  readonly write: Write;
}

/** The outcome of an order. The thread's first one has the number `READY`. */
export interface Acknowledgement {
  readonly number: number;
  readonly outcome:
    | { readonly kind: 'done'; readonly result: WriteResult }
    | { readonly kind: 'unavailable' | 'unconfirmed' | 'corrupt'; readonly message: string };
}

/**
 * Milliseconds on the monotonic clock that all threads of a process share: `performance.now()` begins at 0 in each of
 * them.
 */
export function sharedNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The number that no order has: it acknowledges that the thread has opened the database. */
export const READY = -1;

/**
 * Milliseconds that a write may wait for its turn, however small its budget. Giving up on the machine's own disk would
 * make nothing faster and leave the outcome unknown, so a write waits longer here than for a server elsewhere.
 */
const TURN_MS = 1_000;
/** Milliseconds that it may then wait for the disk, for the same reason. */
const DISK_MS = 4_000;

/** Passes writes of one database file to the thread that makes them, and waits for the disk. */
export class WriteQueue {
  readonly #file: string;
  readonly #waiting = new Map<number, PromiseWithResolvers<WriteResult>>();
  readonly #opened = Promise.withResolvers<void>();
  #numbers = 0;
  #thread: Worker | undefined;

  constructor(file: string) {
    this.#file = file;
    // If nobody waits for this promise, the first write reports the failure.
    this.#opened.promise.catch(() => {});
    this.#thread = this.#start();
  }

  /**
   * Makes one write, which is on the disk when the promise resolves. Throws StoreUnavailable or StoreCorrupt if it was
   * not made, StoreWriteUnconfirmed if that is unknown, because the disk took too long or the thread died.
   */
  write(budget: StoreBudget, write: Write): Promise<WriteResult> {
    return spend(budget, async () => {
      if (budget.remaining <= 0) throw new StoreUnavailable('the time for store work is used up');
      this.#thread ??= this.#start();
      const number = this.#numbers++;
      const acknowledged = Promise.withResolvers<WriteResult>();
      this.#waiting.set(number, acknowledged);
      this.#thread.ref();
      const turn = Math.max(budget.remaining, TURN_MS);
      this.#thread.postMessage({ number, deadline: sharedNow() + turn, write } satisfies Order);
      const timer = setTimeout(() => {
        acknowledged.reject(new StoreWriteUnconfirmed('the disk did not confirm the write in time'));
      }, turn + DISK_MS);
      try {
        return await acknowledged.promise;
      } finally {
        clearTimeout(timer);
        this.#waiting.delete(number);
        // An idle thread must not keep the process alive.
        if (this.#waiting.size === 0) this.#thread?.unref();
      }
    });
  }

  /** Resolves when the thread has opened the database. Rejects with StoreUnavailable if it could not. */
  opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Waits for writes in progress, and ends the thread. */
  async close(): Promise<void> {
    while (this.#waiting.size > 0) await sleep(5);
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const started = new Worker(new URL('./write-thread.ts', import.meta.url), { workerData: { file: this.#file } });
    started.on('message', ({ number, outcome }: Acknowledgement) => {
      if (number === READY) {
        this.#opened.resolve();
        if (this.#waiting.size === 0) started.unref();
      }
      const order = this.#waiting.get(number);
      if (outcome.kind === 'done') order?.resolve(outcome.result);
      else if (outcome.kind === 'corrupt') order?.reject(new StoreCorrupt(outcome.message));
      else if (outcome.kind === 'unconfirmed') order?.reject(new StoreWriteUnconfirmed(outcome.message));
      else order?.reject(new StoreUnavailable(outcome.message));
    });
    started.on('error', (cause) => this.#lose(started, cause));
    started.on('exit', () => this.#lose(started, undefined));
    return started;
  }

  /** The thread has ended: its writes are unconfirmed, and the next write starts another. */
  #lose(lost: Worker, cause: unknown): void {
    if (lost !== this.#thread) return;
    this.#thread = undefined;
    this.#opened.reject(new StoreUnavailable('the thread that writes did not start', { cause }));
    for (const order of this.#waiting.values()) {
      order.reject(new StoreWriteUnconfirmed('the thread that writes ended', cause === undefined ? {} : { cause }));
    }
  }
}
