/** Limits counted in this process: where there is no shared store or it is unavailable. Times in milliseconds. */
import { LRUCache } from 'lru-cache';
import type { LimitDemand, LimitVerdict } from '../stores/stores.ts';
import { judgeRate } from './gcra.ts';

/** How much of a quota was taken on a day, which is counted from the epoch. */
interface DayCount {
  readonly day: number;
  taken: number;
}

/** The counts of one subject: its theoretical arrival time (GCRA), its use of a day's quota, its leases. */
interface Count {
  tat: number | undefined;
  today: DayCount;
  /** The day that the clock showed before: it comes back if the clock had jumped, with what was taken on it. */
  before: DayCount;
  /**
   * Each lease with the time at which it was given, oldest first. Leases do not expire: only the end of this process
   * could lose one, and the counts end with it.
   */
  readonly leases: Map<string, number>;
}

/** The most idle subjects that are counted at a time; beyond it those that were idle longest are forgotten. */
const MAX_SUBJECTS = 100_000;

/** The start of the next UTC day, milliseconds since the epoch. */
function nextDay(now: number): number {
  return (Math.floor(now / 86_400_000) + 1) * 86_400_000;
}

/**
 * Counts for the day that the clock shows, whichever way it went: each day has its own count. Only a day that is
 * earlier and was not seen before goes on with the later one's, so that a clock set back over midnight gives no second
 * quota.
 */
function turnTo(count: Count, day: number): void {
  const { today, before } = count;
  if (today.day === day) return;
  count.today = before.day === day ? before : { day, taken: day < today.day ? today.taken : 0 };
  count.before = today;
}

/** The clocks by which limits are counted. */
export interface LimitClocks {
  /** A clock that never goes back, for rates and leases. */
  readonly clock?: () => number;
  /** Milliseconds since the epoch, for the day of a quota. */
  readonly wallClock?: () => number;
}

/** Counters in memory, which answer at once and count for this process alone; none is counted yet. */
export class LocalLimits {
  readonly #clock: () => number;
  readonly #wallClock: () => number;
  readonly #idle: LRUCache<string, Count>;
  /** Never pushed out: a lease that is forgotten would be given twice. No more than there are decisions in progress. */
  readonly #leasing = new Map<string, Count>();

  /** `maxSubjects`: the most idle subjects. */
  constructor({ clock, wallClock }: LimitClocks = {}, maxSubjects: number = MAX_SUBJECTS) {
    this.#clock = clock ?? (() => performance.now());
    this.#wallClock = wallClock ?? Date.now;
    // `maxSize` and not `max`, with which the cache would allocate memory for all entries at once, which takes time.
    this.#idle = new LRUCache({ maxSize: maxSubjects, sizeCalculation: () => 1 });
  }

  /** Judges a request and, if it is within its limits, counts it and gives it the lease that it asked for. */
  take(demand: LimitDemand): LimitVerdict {
    const now = this.#clock();
    const count = this.#leasing.get(demand.subject) ??
      this.#idle.get(demand.subject) ?? {
        tat: undefined,
        today: { day: 0, taken: 0 },
        before: { day: 0, taken: 0 },
        leases: new Map<string, number>(),
      };
    const rate = demand.rate === undefined ? undefined : judgeRate(demand.rate, count.tat, now);
    if (rate?.kind === 'beyond') return { kind: 'refused', by: 'rate', waitMs: rate.waitMs };
    if (demand.concurrency !== undefined && count.leases.size >= demand.concurrency.limit) {
      const [oldest = now] = count.leases.values();
      return { kind: 'refused', by: 'concurrency', oldestMs: now - oldest };
    }
    const time = this.#wallClock();
    turnTo(count, Math.floor(time / 86_400_000));
    if (demand.quota !== undefined && count.today.taken >= demand.quota) {
      return { kind: 'refused', by: 'quota', waitMs: nextDay(time) - time };
    }
    if (rate !== undefined) count.tat = rate.tat;
    if (demand.quota !== undefined) count.today.taken++;
    if (demand.concurrency !== undefined) {
      count.leases.set(demand.concurrency.lease, now);
      this.#leasing.set(demand.subject, count);
    } else if (!this.#leasing.has(demand.subject)) this.#idle.set(demand.subject, count);
    return { kind: 'admitted' };
  }

  /** Ends a lease; one that is not there is ignored. */
  release(subject: string, lease: string): void {
    const count = this.#leasing.get(subject);
    if (count?.leases.delete(lease) !== true || count.leases.size > 0) return;
    this.#leasing.delete(subject);
    this.#idle.set(subject, count);
  }
}
