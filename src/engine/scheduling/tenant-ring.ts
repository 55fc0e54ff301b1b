/**
 * Deficit round robin over tenants, in cost: each visit gives a tenant one quantum, and it is served while it has some
 * left. An item may cost more than what is left; the tenant then owes the rest and is passed over until the debt is
 * paid. What a tenant owes when its last item is taken stays owed while others wait, so sending one large item at a
 * time gains nothing.
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

interface Tenant<T> {
  readonly items: Heap<T>;
  deficit: number;
  cost: number;
}

/** Milliseconds of engine time that a visit gives. */
const QUANTUM = 20;
/**
 * Tenants whose debts are remembered while they have nothing waiting; beyond this number the oldest debt is forgotten.
 */
const MAX_DEBTORS = 10_000;

/** Items of many tenants, none at first. */
export class TenantRing<T extends RingItem> {
  /** In the order of visits: a tenant that was visited is put at the end. */
  readonly #ring = new Map<string, Tenant<T>>();
  readonly #debts = new Map<string, { readonly deficit: number; readonly round: number }>();
  #round = 0;
  #visits = 0;

  get tenants(): number {
    return this.#ring.size;
  }

  add(item: T): void {
    const tenant = this.#ring.get(item.tenant) ?? this.#enter(item.tenant);
    tenant.items.push(item);
    tenant.cost += item.cost;
  }

  /** Returns whether it was there. */
  remove(item: T): boolean {
    const tenant = this.#ring.get(item.tenant);
    return tenant !== undefined && this.#removeFrom(tenant, item);
  }

  /** The next item in fair order among tenants whose first item is eligible. */
  take(eligible: (item: T) => boolean): T | undefined {
    return this.#visit(eligible) ?? (this.#skipRounds(eligible) ? this.#visit(eligible) : undefined);
  }

  /** The cost of what the tenant has waiting. */
  costOf(tenant: string): number {
    return this.#ring.get(tenant)?.cost ?? 0;
  }

  /** All items, in no particular order. */
  all(): readonly T[] {
    return [...this.#ring.values()].flatMap(({ items }) => items.all());
  }

  #enter(name: string): Tenant<T> {
    const debt = this.#debts.get(name);
    this.#debts.delete(name);
    const owed = debt === undefined ? 0 : Math.min(0, debt.deficit + (this.#round - debt.round) * QUANTUM);
    const tenant = {
      items: createHeap<T>((a, b) => a.rank < b.rank || (a.rank === b.rank && a.sequence < b.sequence)),
      deficit: owed + QUANTUM,
      cost: 0,
    };
    this.#ring.set(name, tenant);
    return tenant;
  }

  #leave(name: string, { deficit }: Tenant<T>): void {
    this.#ring.delete(name);
    if (this.#ring.size === 0) {
      // Nobody waits, so nobody is owed anything.
      this.#debts.clear();
      return;
    }
    if (deficit >= 0) return;
    this.#debts.set(name, { deficit, round: this.#round });
    const [oldest] = this.#debts.keys();
    if (this.#debts.size > MAX_DEBTORS && oldest !== undefined) this.#debts.delete(oldest);
  }

  #rotate(name: string, tenant: Tenant<T>): void {
    this.#ring.delete(name);
    this.#ring.set(name, tenant);
    if (++this.#visits < this.#ring.size) return;
    this.#visits = 0;
    this.#round++;
  }

  #removeFrom(tenant: Tenant<T>, item: T): boolean {
    if (!tenant.items.remove(item)) return false;
    tenant.cost -= item.cost;
    if (tenant.items.size === 0) this.#leave(item.tenant, tenant);
    return true;
  }

  /** Visits every tenant once, or until one is served. */
  #visit(eligible: (item: T) => boolean): T | undefined {
    for (let left = this.#ring.size; left > 0; left--) {
      const [next] = this.#ring;
      if (next === undefined) return undefined;
      const [name, tenant] = next;
      const first = tenant.items.peek() as T;
      if (tenant.deficit > 0 && eligible(first)) {
        tenant.deficit -= first.cost;
        this.#removeFrom(tenant, first);
        return first;
      }
      if (tenant.deficit <= 0) tenant.deficit += QUANTUM;
      this.#rotate(name, tenant);
    }
    return undefined;
  }

  /** Skips the rounds in which nobody could be served, all at once. Returns whether somebody can be served now. */
  #skipRounds(eligible: (item: T) => boolean): boolean {
    const tenants = [...this.#ring.values()];
    let least = Number.NEGATIVE_INFINITY;
    for (const { items, deficit } of tenants) if (eligible(items.peek() as T)) least = Math.max(least, deficit);
    if (least === Number.NEGATIVE_INFINITY) return false;
    const rounds = Math.max(0, Math.floor(-least / QUANTUM) + 1);
    for (const tenant of tenants) if (tenant.deficit <= 0) tenant.deficit += rounds * QUANTUM;
    this.#round += rounds;
    return true;
  }
}
