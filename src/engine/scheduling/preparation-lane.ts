/**
 * One engine's lane of preparations, fair by owner: owners take turns by deficit round robin in cost, as tenants do in
 * the queue of decisions. What one owner has waiting delays another by no more than the other's own work takes.
 */
import { type RingItem, TenantRing } from './tenant-ring.ts';

/** A piece of an owner's work that waits. */
export interface LaneItem extends RingItem {
  /** Milliseconds of all that is left of the preparation in this lane, this piece included. */
  readonly left: number;
}

/** What waits for one engine. */
export interface PreparationLane<T extends LaneItem> {
  add(item: T): void;
  /** The next piece in fair order that is still wanted; those that are not are dropped. */
  take(wanted: (item: T) => boolean): T | undefined;
  /**
   * The most milliseconds of work until a new preparation of the owner, which takes `own`, is done, itself included.
   */
  costUntilDone(owner: string, own: number): number;
  all(): readonly T[];
  /** Milliseconds that waiting decisions are given before the next piece. */
  debt: number;
}

/** A lane without work. */
export function createPreparationLane<T extends LaneItem>(): PreparationLane<T> {
  const ring = new TenantRing<T>();
  return {
    debt: 0,
    add: (item) => ring.add(item),
    take(wanted) {
      for (;;) {
        const item = ring.take(() => true);
        if (item === undefined || wanted(item)) return item;
      }
    },
    costUntilDone(owner, own) {
      const left = new Map<string, number>([[owner, own]]);
      for (const item of ring.all()) left.set(item.tenant, (left.get(item.tenant) ?? 0) + item.left);
      const mine = left.get(owner) as number;
      let sum = 0;
      for (const cost of left.values()) sum += Math.min(cost, mine);
      return sum;
    },
    all: () => ring.all(),
  };
}
