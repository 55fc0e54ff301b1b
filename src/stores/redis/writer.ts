/**
 * Makes writes, and waits for replicas if the operator wants that. WAIT is about the writes of its own connection, and
 * blocks that, so writes then have a link of their own. One WAIT confirms everything that was written before it, so
 * concurrent writes share it.
 */
import type { StoreBudget } from '../budget.ts';
import { StoreWriteUnconfirmed } from '../stores.ts';
import type { RedisConnection, RedisNodeConnection } from './connection.ts';
import type { RedisLink } from './link.ts';

/** Milliseconds that the server waits for its replicas. */
const WAIT_MS = 100;

/** Makes writes that are confirmed by as many replicas as the settings ask for. */
export class RedisWriter {
  readonly #link: RedisLink;
  readonly #replicas: number;
  readonly #waits = new WeakMap<object, SharedWait>();

  /** `link`: no reads may share it if `replicas` is more than 0. */
  constructor(link: RedisLink, replicas: number) {
    this.#link = link;
    this.#replicas = replicas;
  }

  /**
   * Does one write and, if it `changed` something, waits until enough replicas have it. `key`: a key that it writes.
   * Throws StoreWriteUnconfirmed if they do not confirm it in time: the write is made, but a failover may lose it.
   */
  write<T>(
    budget: StoreBudget,
    key: string,
    work: (connection: RedisConnection) => Promise<T>,
    changed: (result: T) => boolean,
  ): Promise<T> {
    return this.#link.call('write', key, budget, async (connection) => {
      const result = await work(connection);
      if (this.#replicas === 0 || !changed(result)) return result;
      const node = await connection.nodeOf(key);
      const wait = this.#waits.get(node.identity) ?? new SharedWait();
      this.#waits.set(node.identity, wait);
      const confirmed = await wait.join(node, this.#replicas);
      if (confirmed < this.#replicas) {
        throw new StoreWriteUnconfirmed(`${confirmed} of ${this.#replicas} replicas confirmed the write`);
      }
      return result;
    });
  }
}

/** The WAITs on one connection, of which one is in progress at a time. */
class SharedWait {
  #current: Promise<number> = Promise.resolve(0);
  #next: Promise<number> | undefined;

  /** Resolves to the number of replicas that have everything that was written before the call. */
  join(node: RedisNodeConnection, replicas: number): Promise<number> {
    // A WAIT in progress may have begun before this write, so only the next one covers it.
    this.#next ??= this.#current
      .catch(() => 0)
      .then(() => {
        this.#next = undefined;
        this.#current = node.send(['WAIT', String(replicas), String(WAIT_MS)]).then(Number);
        return this.#current;
      });
    return this.#next;
  }
}
