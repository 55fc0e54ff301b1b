/** Limits counted in this process: where there is no shared store, and while it is away. Times in milliseconds. */
import { LRUCache } from 'lru-cache';
import type { LimitDemand, LimitVerdict } from '../stores/limit-store.ts';
import { judgeRate } from './gcra.ts';

/** Counts in memory: it answers at once, and for this process alone. */
export interface LocalLimits {
  /** Judges a request and, if it is admitted, counts it and gives it the lease that it asked for. */
  take(demand: LimitDemand): LimitVerdict;
  /** Ends a lease; one that is not there is ignored. */
  release(subject: string, lease: string): void;
}

/** What is counted of one subject: its arrival time (GCRA), the day and what it took of the quota, its leases. */
interface Count {
  tat: number | undefined;
  day: number;
  taken: number;
  /**
   * Lease to the time it was given, oldest first. Leases end with `release` alone: the process that would lose
   * one is this one.
   */
  readonly leases: Map<string, number>;
}

/** Subjects that are counted at one time; past it the ones that were idle longest are forgotten. */
const MAX_SUBJECTS = 100_000;

/** The start of the next UTC day, milliseconds since the epoch. */
function nextDay(now: number): number {
  return (Math.floor(now / 86_400_000) + 1) * 86_400_000;
}

/** What the counts are told by. */
export interface LimitClocks {
  /** A clock that never goes back, for rates and leases. */
  readonly clock?: () => number;
  /** Milliseconds since the epoch, for the day of a quota. */
  readonly wallClock?: () => number;
}

/** Counts of no subject yet; at most `maxSubjects` of them. */
export function createLocalLimits(clocks: LimitClocks = {}, maxSubjects: number = MAX_SUBJECTS): LocalLimits {
  const { clock = () => performance.now(), wallClock = Date.now } = clocks;
  // Counted as sizes: with `max` the cache would take the memory of all of them, and its time, at the start.
  const idle = new LRUCache<string, Count>({ maxSize: maxSubjects, sizeCalculation: () => 1 });
  // Never pushed out: a place that is forgotten would be given twice. There are as many as decisions in progress.
  const leasing = new Map<string, Count>();

  return {
    take(demand) {
      const now = clock();
      const count = leasing.get(demand.subject) ??
        idle.get(demand.subject) ?? {
          tat: undefined,
          day: 0,
          taken: 0,
          leases: new Map<string, number>(),
        };
      const rate = demand.rate === undefined ? undefined : judgeRate(demand.rate, count.tat, now);
      if (rate?.kind === 'beyond') return { kind: 'refused', by: 'rate', waitMs: rate.waitMs };
      if (demand.concurrency !== undefined && count.leases.size >= demand.concurrency.limit) {
        const [oldest = now] = count.leases.values();
        return { kind: 'refused', by: 'concurrency', oldestMs: now - oldest };
      }
      const today = wallClock();
      const day = Math.floor(today / 86_400_000);
      // A clock that is set back over midnight gives no second quota.
      if (count.day < day) {
        count.day = day;
        count.taken = 0;
      }
      if (demand.quota !== undefined && count.taken >= demand.quota) {
        return { kind: 'refused', by: 'quota', waitMs: nextDay(today) - today };
      }
      if (rate !== undefined) count.tat = rate.tat;
      if (demand.quota !== undefined) count.taken++;
      if (demand.concurrency !== undefined) {
        count.leases.set(demand.concurrency.lease, now);
        leasing.set(demand.subject, count);
      } else if (!leasing.has(demand.subject)) idle.set(demand.subject, count);
      return { kind: 'admitted' };
    },
    release(subject, lease) {
      const count = leasing.get(subject);
      if (count?.leases.delete(lease) !== true || count.leases.size > 0) return;
      leasing.delete(subject);
      idle.set(subject, count);
    },
  };
}
