/**
 * The queue of decisions that wait for an engine. Callers with a key and those without are served in equal shares of
 * cost while both wait, and within each of the two, tenants are served by deficit round robin.
 */
import { type RingItem, TenantRing } from './tenant-ring.ts';

/** What the queue must know of an item. */
export interface QueueItem extends RingItem {
  readonly keyed: boolean;
  /** What its texts take in memory, at two bytes a character. */
  readonly bytes: number;
}

/** What waits in the queue, summed up. */
export interface Backlog {
  readonly jobs: number;
  readonly bytes: number;
  /** Milliseconds on one core. */
  readonly cost: number;
}

/** Items that wait, in fair order. `T` is a job in the service, less in tests. */
export interface FairQueue<T extends QueueItem> {
  add(item: T): void;
  /** Takes an item out; false if it was not waiting. */
  remove(item: T): boolean;
  /** Takes out the next item in fair order that is eligible; undefined if there is none. */
  take(eligible: (item: T) => boolean): T | undefined;
  /** All items, in no particular order. */
  all(): readonly T[];
  /** How much waits: all of it, or only that of callers without a key. */
  backlog(of: 'all' | 'anonymous'): Backlog;
  /** The most cost that is served before an item of cost `own` that the tenant adds now. */
  costAhead(tenant: string, keyed: boolean, own: number): number;
}

interface Side<T extends QueueItem> {
  readonly ring: TenantRing<T>;
  readonly backlog: { jobs: number; bytes: number; cost: number };
  /** Cost served, on a scale that both sides share. */
  served: number;
}

/** A queue without items. */
export function createFairQueue<T extends QueueItem>(): FairQueue<T> {
  const side = (): Side<T> => ({
    ring: new TenantRing<T>(),
    backlog: { jobs: 0, bytes: 0, cost: 0 },
    served: 0,
  });
  const keyed = side();
  const anonymous = side();

  const count = ({ backlog }: Side<T>, { bytes, cost }: T, sign: 1 | -1): void => {
    backlog.jobs += sign;
    backlog.bytes += sign * bytes;
    // Sums of floating-point costs drift; an empty side costs nothing.
    backlog.cost = backlog.jobs === 0 ? 0 : backlog.cost + sign * cost;
  };

  return {
    add(item) {
      const [own, other] = item.keyed ? [keyed, anonymous] : [anonymous, keyed];
      // A side that had nothing to serve has no claim on the time that the other used.
      if (own.backlog.jobs === 0) own.served = Math.max(own.served, other.served);
      own.ring.add(item);
      count(own, item, 1);
    },
    remove(item) {
      const own = item.keyed ? keyed : anonymous;
      if (!own.ring.remove(item)) return false;
      count(own, item, -1);
      return true;
    },
    take(eligible) {
      const order = keyed.served <= anonymous.served ? [keyed, anonymous] : [anonymous, keyed];
      for (const each of order) {
        const item = each.ring.take(eligible);
        if (item === undefined) continue;
        each.served += item.cost;
        count(each, item, -1);
        return item;
      }
      return undefined;
    },
    all: () => [...keyed.ring.all(), ...anonymous.ring.all()],
    backlog(of) {
      if (of === 'anonymous') return { ...anonymous.backlog };
      return {
        jobs: keyed.backlog.jobs + anonymous.backlog.jobs,
        bytes: keyed.backlog.bytes + anonymous.backlog.bytes,
        cost: keyed.backlog.cost + anonymous.backlog.cost,
      };
    },
    costAhead(tenant, isKeyed, own) {
      const [mine, other] = isKeyed ? [keyed, anonymous] : [anonymous, keyed];
      const tenantCost = mine.ring.costOf(tenant) + own;
      // While this tenant's cost is served, every other tenant of its side gets at most as much, and the other side as
      // much as all of them.
      const sameSide = Math.min(mine.backlog.cost, tenantCost * Math.max(1, mine.ring.tenants));
      return sameSide + Math.min(other.backlog.cost, sameSide + own);
    },
  };
}
