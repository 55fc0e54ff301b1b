/**
 * Makes writes, and waits for replicas if the operator wants that. WAIT is about the writes of its own connection, and
 * blocks that, so writes then have a link of their own. One WAIT confirms everything that was written before it, so
 * concurrent writes share it.
 */
import type { StoreBudget } from '../budget.ts';
import { StoreWriteUnconfirmed } from '../stores.ts';
import type { RedisConnection, RedisNodeConnection } from './connection.ts';
import type { RedisLink } from './link.ts';

/** Makes writes that are confirmed by as many replicas as the settings ask for. */
export interface RedisWriter {
  /**
   * Does one write and, if it `changed` something, waits until enough replicas have it. `key`: a key that it writes.
   * Throws StoreWriteUnconfirmed if they do not confirm it in time: the write is made, but a failover may lose it.
   */
  write<T>(
    budget: StoreBudget,
    key: string,
    work: (connection: RedisConnection) => Promise<T>,
    changed: (result: T) => boolean,
  ): Promise<T>;
}

/** Milliseconds that the server waits for its replicas. */
const WAIT_MS = 100;

/** A writer over a link, which no reads may share if `replicas` is more than 0. */
export function createRedisWriter(link: RedisLink, replicas: number): RedisWriter {
  const waits = new WeakMap<object, SharedWait>();

  return {
    write(budget, key, work, changed) {
      return link.call('write', key, budget, async (connection) => {
        const result = await work(connection);
        if (replicas === 0 || !changed(result)) return result;
        const node = await connection.nodeOf(key);
        const wait = waits.get(node.identity) ?? createSharedWait();
        waits.set(node.identity, wait);
        const confirmed = await wait.join(node);
        if (confirmed < replicas) {
          throw new StoreWriteUnconfirmed(`${confirmed} of ${replicas} replicas confirmed the write`);
        }
        return result;
      });
    },
  };

  function createSharedWait(): SharedWait {
    let current: Promise<number> = Promise.resolve(0);
    let next: Promise<number> | undefined;
    return {
      join(node) {
        // A WAIT in progress may have begun before this write, so only the next one covers it.
        next ??= current
          .catch(() => 0)
          .then(() => {
            next = undefined;
            current = node.send(['WAIT', String(replicas), String(WAIT_MS)]).then(Number);
            return current;
          });
        return next;
      },
    };
  }
}

/** The WAITs on one connection, of which one is in progress at a time. */
interface SharedWait {
  /** Resolves to the number of replicas that have everything that was written before the call. */
  join(node: RedisNodeConnection): Promise<number>;
}
