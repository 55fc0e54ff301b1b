/**
 * Makes writes, and waits for replicas if the operator wants that. WAIT is about the writes of its own connection, and
 * blocks that, so writes then have a link of their own. One WAIT confirms everything that was written before it, so
 * concurrent writes share it.
 */
import type { StoreBudget } from '../budget.ts';
import { StoreWriteUnconfirmed } from '../stores.ts';
import type { RedisNodeConnection } from './connection.ts';
import type { RedisLink } from './link.ts';
import type { RedisScript } from './scripts.ts';

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
   * Runs a script that writes the first of its keys, and resolves to its reply; if that is `changed`, once enough
   * replicas have the write. Throws StoreWriteUnconfirmed if they do not confirm it in time: the write is made, but a
   * failover may lose it.
   */
  run(
    script: RedisScript,
    keys: readonly [string, ...string[]],
    args: readonly string[],
    budget: StoreBudget,
    changed: unknown = 1,
  ): Promise<unknown> {
    return this.#link.call('write', keys[0], budget, async (connection) => {
      const reply = await script.run(connection, keys, args);
      if (this.#replicas === 0 || reply !== changed) return reply;
      const node = await connection.nodeOf(keys[0]);
      const wait = this.#waits.get(node.identity) ?? new SharedWait();
      this.#waits.set(node.identity, wait);
      const confirmed = await wait.join(node, this.#replicas);
      if (confirmed < this.#replicas) {
        throw new StoreWriteUnconfirmed(`${confirmed} of ${this.#replicas} replicas confirmed the write`);
      }
      return reply;
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
