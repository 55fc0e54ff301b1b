/**
 * The queue of decisions that wait for an engine. Callers with a key and those without are served in equal shares of
 * cost while both wait, and within each of the two, tenants are served by deficit round robin.
 */
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

interface Side<T extends QueueItem> {
  readonly ring: TenantRing<T>;
  readonly backlog: { jobs: number; bytes: number; cost: number };
  /** Cost served, on a scale that both sides share. */
  served: number;
}

/** Items that wait, in fair order. `T` is a job in the service, less in tests. */
export class FairQueue<T extends QueueItem> {
  readonly #keyed: Side<T> = newSide();
  readonly #anonymous: Side<T> = newSide();

  add(item: T): void {
    const [own, other] = this.#sides(item.keyed);
    // A side that had nothing to serve has no claim on the time that the other used.
    if (own.backlog.jobs === 0) own.served = Math.max(own.served, other.served);
    own.ring.add(item);
    count(own, item, 1);
  }

  /** Takes an item out; false if it was not waiting. */
  remove(item: T): boolean {
    const [own] = this.#sides(item.keyed);
    if (!own.ring.remove(item)) return false;
    count(own, item, -1);
    return true;
  }

  /** Takes out the next item in fair order that is eligible; undefined if there is none. */
  take(eligible: (item: T) => boolean): T | undefined {
    for (const each of this.#sides(this.#keyed.served <= this.#anonymous.served)) {
      const item = each.ring.take(eligible);
      if (item === undefined) continue;
      each.served += item.cost;
      count(each, item, -1);
      return item;
    }
    return undefined;
  }

  /** All items, in no particular order. */
  all(): readonly T[] {
    return [...this.#keyed.ring.all(), ...this.#anonymous.ring.all()];
  }

  /** How much waits: all of it, or only that of callers without a key. */
  backlog(of: 'all' | 'anonymous'): Backlog {
    const [keyed, anonymous] = [this.#keyed.backlog, this.#anonymous.backlog];
    if (of === 'anonymous') return { ...anonymous };
    return {
      jobs: keyed.jobs + anonymous.jobs,
      bytes: keyed.bytes + anonymous.bytes,
      cost: keyed.cost + anonymous.cost,
    };
  }

  /** The cost of what the tenant has waiting. */
  costOf(tenant: string, keyed: boolean): number {
    return this.#sides(keyed)[0].ring.costOf(tenant);
  }

  /** The most cost that is served before an item of cost `own` that the tenant adds now. */
  costAhead(tenant: string, keyed: boolean, own: number): number {
    const [mine, other] = this.#sides(keyed);
    // While this tenant's cost is served, every other tenant of its side gets about as much, and the other side as
    // much as all of them.
    const sameSide = mine.ring.costWithin(mine.ring.costOf(tenant) + own);
    return sameSide + Math.min(other.backlog.cost, sameSide + own);
  }

  /** Both sides, that of callers with a key first if `keyed`. */
  #sides(keyed: boolean): readonly [Side<T>, Side<T>] {
    return keyed ? [this.#keyed, this.#anonymous] : [this.#anonymous, this.#keyed];
  }
}

function newSide<T extends QueueItem>(): Side<T> {
  return { ring: new TenantRing<T>(), backlog: { jobs: 0, bytes: 0, cost: 0 }, served: 0 };
}

function count<T extends QueueItem>({ backlog }: Side<T>, { bytes, cost, after }: T, sign: 1 | -1): void {
  backlog.jobs += sign;
  backlog.bytes += sign * bytes;
  // Sums of floating-point costs drift; an empty side costs nothing.
  backlog.cost = backlog.jobs === 0 ? 0 : backlog.cost + sign * (cost + after);
}

// Deficit round robin over tenants, in cost: each visit gives a tenant one quantum, and it is served while it has some
// left. An item may cost more than what is left; the tenant then owes the rest and is passed over until the debt is
// paid. What a tenant owes when its last item is taken stays owed while others wait, so sending one large item at a
// time gains nothing.

/** What the ring must know of an item. */
export interface RingItem {
  readonly tenant: string;
  /** Milliseconds on one core. */
  readonly cost: number;
  /** Milliseconds of what will be added in its place when it is done: the rest of a catalog of which it is a piece. */
  readonly after: number;
  /** Within a tenant the smallest is first; equal ones in the order of `sequence`. */
  readonly rank: number;
  readonly sequence: number;
}

interface Tenant<T> {
  /** In the order in which they are served. */
  readonly items: T[];
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

  /** The cost of what is served while one tenant is served `share`: of each as much, or what it gets in a visit. */
  costWithin(share: number): number {
    let sum = 0;
    for (const { cost, items } of this.#ring.values())
      sum += Math.min(cost, Math.max(share, QUANTUM + (items[0] as T).cost));
    return sum;
  }

  add(item: T): void {
    const tenant = this.#ring.get(item.tenant) ?? this.#enter(item.tenant);
    tenant.items.splice(placeOf(item, tenant.items), 0, item);
    tenant.cost += item.cost + item.after;
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
    return [...this.#ring.values()].flatMap(({ items }) => items);
  }

  #enter(name: string): Tenant<T> {
    const debt = this.#debts.get(name);
    this.#debts.delete(name);
    const owed = debt === undefined ? 0 : Math.min(0, debt.deficit + (this.#round - debt.round) * QUANTUM);
    const tenant = {
      items: [],
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
    const place = placeOf(item, tenant.items);
    if (tenant.items[place] !== item) return false;
    tenant.items.splice(place, 1);
    tenant.cost -= item.cost + item.after;
    if (tenant.items.length === 0) this.#leave(item.tenant, tenant);
    return true;
  }

  /**
   * Visits every tenant once, or until one is served. One whose first item is not eligible keeps its place: what waits
   * for one engine must not lose its turn there whenever another engine is free.
   */
  #visit(eligible: (item: T) => boolean): T | undefined {
    let left = this.#ring.size;
    // Those that are put at the end are not visited again.
    for (const [name, tenant] of this.#ring) {
      if (left-- === 0) return undefined;
      const first = tenant.items[0] as T;
      if (!eligible(first)) continue;
      if (tenant.deficit > 0) {
        tenant.deficit -= first.cost;
        this.#removeFrom(tenant, first);
        return first;
      }
      tenant.deficit += QUANTUM;
      this.#rotate(name, tenant);
    }
    return undefined;
  }

  /** Skips the rounds in which nobody could be served, all at once. Returns whether somebody can be served now. */
  #skipRounds(eligible: (item: T) => boolean): boolean {
    const tenants = [...this.#ring.values()].filter(({ items }) => eligible(items[0] as T));
    const least = Math.max(...tenants.map(({ deficit }) => deficit));
    if (least === Number.NEGATIVE_INFINITY) return false;
    const rounds = Math.max(0, Math.floor(-least / QUANTUM) + 1);
    for (const tenant of tenants) if (tenant.deficit <= 0) tenant.deficit += rounds * QUANTUM;
    this.#round += rounds;
    return true;
  }
}

/** The place of an item among sorted ones, or where it belongs. */
function placeOf<T extends RingItem>(item: T, sorted: readonly T[]): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const { rank, sequence } = sorted[middle] as T;
    if (rank < item.rank || (rank === item.rank && sequence < item.sequence)) from = middle + 1;
    else to = middle;
  }
  return from;
}
