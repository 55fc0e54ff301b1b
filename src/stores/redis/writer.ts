/**
 * Writes, and where the operator wants it the wait for replicas. WAIT counts the writes of its own connection and holds
 * that up, so writes then have a line of their own. One WAIT confirms all that was written before it, so concurrent
 * writes share it.
 */
import type { StoreBudget } from '../budget.ts';
import { StoreWriteUnconfirmed } from '../errors.ts';
import type { RedisConnection, RedisNodeConnection } from './connection.ts';
import type { RedisLink } from './link.ts';

/** Makes writes that are confirmed by as many replicas as the settings ask for. */
export interface RedisWriter {
  /**
   * Does one write and, if it `changed` something, sees that enough replicas have it. `key`: a key that it wrote.
   * Throws StoreWriteUnconfirmed if they do not say so in time: the write is made, but a failover may lose it.
   */
  write<T>(
    budget: StoreBudget,
    key: string,
    work: (connection: RedisConnection) => Promise<T>,
    changed: (result: T) => boolean,
  ): Promise<T>;
}

/** How long the server waits for its replicas. */
const WAIT_MS = 100;

/** A writer on a line; on a line of its own if `replicas` is more than 0. */
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
        // One that is under way may have begun before this write: the next one covers it.
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

/** WAITs on one connection, one at a time. */
interface SharedWait {
  /** Resolves to the number of replicas that have everything that was written before. */
  join(node: RedisNodeConnection): Promise<number>;
}
