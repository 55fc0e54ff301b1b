/**
 * Deficit round robin over tenants, in cost: each visit gives a tenant one quantum, and it is served while it has some left. An item may cost
 * more than what is left; the tenant then owes the rest and is passed over until it is paid. What a tenant owes when its last item
 * is taken stays owed while others wait, so sending one large item at a time gains nothing.
 */
import { createHeap, type Heap } from './heap.ts';

/** What the ring must know of an item. */
export interface RingItem {
  readonly tenant: string;
  /** Milliseconds on one core. */
  readonly cost: number;
  /** Within a tenant the smallest is first; equal ones in the order of `sequence`. */
  readonly rank: number;
  readonly sequence: number;
}

/** Items of many tenants. */
export interface TenantRing<T extends RingItem> {
  add(item: T): void;
  remove(item: T): boolean;
  /** The next item in fair order among tenants whose first item is eligible. */
  take(eligible: (item: T) => boolean): T | undefined;
  /** The cost of what the tenant has waiting. */
  costOf(tenant: string): number;
  readonly tenants: number;
  /** All items, in no particular order. */
  all(): readonly T[];
}

interface Tenant<T> {
  readonly items: Heap<T>;
  deficit: number;
  cost: number;
}

const quantum = 20;
const maxDebtors = 10_000;

/** A ring without items. */
export function createTenantRing<T extends RingItem>(): TenantRing<T> {
  // Iterates in the order of visits: a tenant that was visited is put at the end.
  const ring = new Map<string, Tenant<T>>();
  const debts = new Map<string, { readonly deficit: number; readonly round: number }>();
  let round = 0;
  let visits = 0;

  const enter = (name: string): Tenant<T> => {
    const debt = debts.get(name);
    debts.delete(name);
    const owed = debt === undefined ? 0 : Math.min(0, debt.deficit + (round - debt.round) * quantum);
    const tenant = {
      items: createHeap<T>((a, b) => a.rank < b.rank || (a.rank === b.rank && a.sequence < b.sequence)),
      deficit: owed + quantum,
      cost: 0,
    };
    ring.set(name, tenant);
    return tenant;
  };

  const leave = (name: string, { deficit }: Tenant<T>): void => {
    ring.delete(name);
    if (ring.size === 0) {
      // Nobody waits, so nobody was held up.
      debts.clear();
      return;
    }
    if (deficit >= 0) return;
    debts.set(name, { deficit, round });
    const [oldest] = debts.keys();
    if (debts.size > maxDebtors && oldest !== undefined) debts.delete(oldest);
  };

  const rotate = (name: string, tenant: Tenant<T>): void => {
    ring.delete(name);
    ring.set(name, tenant);
    if (++visits < ring.size) return;
    visits = 0;
    round++;
  };

  const removeFrom = (name: string, tenant: Tenant<T>, item: T): void => {
    tenant.items.remove(item);
    tenant.cost -= item.cost;
    if (tenant.items.size === 0) leave(name, tenant);
  };

  /** One visit to every tenant; the first that may be served ends it. */
  const visit = (eligible: (item: T) => boolean): T | undefined => {
    for (let left = ring.size; left > 0; left--) {
      const [next] = ring;
      if (next === undefined) return undefined;
      const [name, tenant] = next;
      const first = tenant.items.peek() as T;
      if (tenant.deficit > 0 && eligible(first)) {
        tenant.deficit -= first.cost;
        removeFrom(name, tenant, first);
        return first;
      }
      if (tenant.deficit <= 0) tenant.deficit += quantum;
      rotate(name, tenant);
    }
    return undefined;
  };

  /** The rounds in which nobody could be served, at once. */
  const skipRounds = (eligible: (item: T) => boolean): boolean => {
    let least = Number.NEGATIVE_INFINITY;
    for (const { items, deficit } of ring.values()) if (eligible(items.peek() as T)) least = Math.max(least, deficit);
    if (least === Number.NEGATIVE_INFINITY) return false;
    const rounds = Math.max(0, Math.floor(-least / quantum) + 1);
    for (const tenant of ring.values()) if (tenant.deficit <= 0) tenant.deficit += rounds * quantum;
    round += rounds;
    return true;
  };

  return {
    add(item) {
      const tenant = ring.get(item.tenant) ?? enter(item.tenant);
      tenant.items.push(item);
      tenant.cost += item.cost;
    },
    remove(item) {
      const tenant = ring.get(item.tenant);
      if (tenant === undefined || !tenant.items.remove(item)) return false;
      tenant.cost -= item.cost;
      if (tenant.items.size === 0) leave(item.tenant, tenant);
      return true;
    },
    take: (eligible) => visit(eligible) ?? (skipRounds(eligible) ? visit(eligible) : undefined),
    costOf: (tenant) => ring.get(tenant)?.cost ?? 0,
    all: () => [...ring.values()].flatMap(({ items }) => items.all()),
    get tenants() {
      return ring.size;
    },
  };
}
