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
  const [code, milliseconds] = Array.isArray(reply) ? reply.map(Number) : [];
  switch (code) {
    case 0:
      return { kind: 'admitted' };
    case 1:
      return { kind: 'refused', by: 'rate', waitMs: milliseconds ?? 0 };
    case 2:
      return { kind: 'refused', by: 'concurrency', oldestMs: milliseconds ?? 0 };
    case 3:
      return { kind: 'refused', by: 'quota', waitMs: milliseconds ?? 0 };
    default:
      throw new StoreUnavailable('Redis gave an unknown answer to a question about limits');
  }
}
