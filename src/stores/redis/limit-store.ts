/** Limits in Redis: one script judges and takes them in one round trip. The return of a lease is not waited for. */
import { createStoreBudget } from '../budget.ts';
import { type LimitStore, type LimitVerdict, StoreUnavailable } from '../stores.ts';
import type { RedisLink } from './link.ts';
import { limitNames } from './names.ts';
import { TAKE_LIMITS } from './scripts.ts';

/** A limit store that counts over a link. */
export function createRedisLimitStore(link: RedisLink): LimitStore {
  return {
    async take({ subject, rate, concurrency, quota }, budget) {
      const args = [
        rate === undefined ? '0' : String(1000 / rate.perSecond),
        String(rate?.burst ?? 0),
        String(concurrency?.limit ?? 0),
        concurrency?.lease ?? '',
        String(concurrency?.leaseMs ?? 0),
        String(quota ?? 0),
      ];
      const names = limitNames(subject);
      const reply = await link.call('repeatable', names[0], budget, (connection) =>
        TAKE_LIMITS.run(connection, names, args),
      );
      return verdictOf(reply);
    },
    release(subject, lease) {
      const [, leases] = limitNames(subject);
      link
        .call('repeatable', leases, createStoreBudget(), (connection) =>
          connection.send(leases, ['ZREM', leases, lease]),
        )
        .catch(() => {});
    },
  };
}

function verdictOf(reply: unknown): LimitVerdict {
  const [code, milliseconds = 0] = Array.isArray(reply) ? reply.map(Number) : [];
  if (code === 0) return { kind: 'admitted' };
  if (code === 2) return { kind: 'refused', by: 'concurrency', oldestMs: milliseconds };
  if (code === 1 || code === 3) return { kind: 'refused', by: code === 1 ? 'rate' : 'quota', waitMs: milliseconds };
  throw new StoreUnavailable('Redis gave an unknown answer to a question about limits');
}
