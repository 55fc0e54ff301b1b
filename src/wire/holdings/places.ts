/**
 * The places of one kind, for connections, requests or refusals, bounded for each address and in all. Where there is
 * none left, the address that has most gives up what is idle or makes no progress, for one that has fewer. The last
 * places of all are kept: half of them for addresses that have few, such as probes, the others for those and for
 * addresses from which a valid key came. So what can neither be given up nor waited for leaves room for these.
 */
import type { Account } from './accounts.ts';
import type { Bound } from './settings.ts';

/** The places that are kept are two of so many parts. */
const PARTS = 16;
/** An address that has fewer may have any place. */
const FEW = 4;
/** The part of its places that an address gives up at once, so that a flood does not search again for each. */
const GIVEN_UP = 16;
/** Milliseconds until an account is searched again in which nothing was found that could be given up. */
const SEARCH_INTERVAL = 20;

/** What places are for. */
export interface PlacesOptions<T> {
  readonly bound: Bound;
  /** Since when an item may be given up for another; undefined if it may not. */
  spareSince(item: T, now: number): number | undefined;
  /** Gives up an item, whose place has been taken back. */
  giveUp(item: T): void;
}

/** What an account has places for. */
interface Holder<T> {
  readonly items: Set<T>;
  /** When they may be searched again, after a search that found none to give up. */
  searchAt: number;
}

/** The places of a kind, and who has them. */
export class Places<T> {
  readonly #options: PlacesOptions<T>;
  readonly #holders = new Map<Account, Holder<T>>();
  #size = 0;

  constructor(options: PlacesOptions<T>) {
    this.#options = options;
  }

  /** How many are taken. */
  get size(): number {
    return this.#size;
  }

  /** Takes a place. */
  take(account: Account, item: T): void {
    const holder = this.#holders.get(account);
    if (holder === undefined) this.#holders.set(account, { items: new Set([item]), searchAt: 0 });
    else holder.items.add(item);
    account.places += 1;
    this.#size += 1;
  }

  /** Gives back the place of an item; returns false if it has none. */
  give(account: Account, item: T): boolean {
    const holder = this.#holders.get(account);
    if (holder?.items.delete(item) !== true) return false;
    if (holder.items.size === 0) this.#holders.delete(account);
    account.places -= 1;
    this.#size -= 1;
    return true;
  }

  /** Whether there is a place for another item of this account, within its own bound. May give up some of its own. */
  hasOwn(account: Account, now: number): boolean {
    return this.#countOf(account) < this.#options.bound.perAddress || this.#giveUpOf(account, now);
  }

  /**
   * Whether there is a place for another item of this account, which counts as having `own`, within the bound of all.
   * May give up some of whoever has most.
   */
  has(account: Account, now: number, own = this.#countOf(account)): boolean {
    const { total } = this.#options.bound;
    const part = Math.floor(total / PARTS);
    const kept = own < FEW ? 0 : account.keyedUntil > now ? part : 2 * part;
    return this.#size < total - kept || this.#giveUpOf(this.#largest(account, own, now), now);
  }

  #countOf(account: Account): number {
    return this.#holders.get(account)?.items.size ?? 0;
  }

  /** Of the accounts that have more than `own`, or are the newcomer, the one that has most and can give up some. */
  #largest(newcomer: Account, own: number, now: number): Account | undefined {
    let [largest, most, longest]: [Account | undefined, number, number] = [undefined, own, 0];
    for (const [account, { items }] of this.#holders) {
      if (items.size < most || (items.size === own && account !== newcomer)) continue;
      const since = this.#longestSpare(account, now);
      if (since === undefined || (items.size === most && largest !== undefined && since >= longest)) continue;
      [largest, most, longest] = [account, items.size, since];
    }
    return largest;
  }

  /** Since when an account has had something that it can give up; undefined if it has nothing. */
  #longestSpare(account: Account, now: number): number | undefined {
    const holder = this.#holders.get(account);
    if (holder === undefined || now < holder.searchAt) return undefined;
    let longest: number | undefined;
    for (const item of holder.items) {
      const since = this.#options.spareSince(item, now);
      if (since !== undefined && (longest === undefined || since < longest)) longest = since;
    }
    if (longest === undefined) holder.searchAt = now + SEARCH_INTERVAL;
    return longest;
  }

  /** Gives up a part of an account's items, at least one, the longest spare first; returns whether there was any. */
  #giveUpOf(account: Account | undefined, now: number): boolean {
    if (account === undefined || this.#longestSpare(account, now) === undefined) return false;
    const { items } = this.#holders.get(account) as Holder<T>;
    const spare = Array.from(items, (item) => [item, this.#options.spareSince(item, now)] as const)
      .filter((pair): pair is readonly [T, number] => pair[1] !== undefined)
      .sort(([, a], [, b]) => a - b);
    for (const [item] of spare.slice(0, Math.max(1, Math.floor(items.size / GIVEN_UP)))) {
      this.give(account, item);
      this.#options.giveUp(item);
    }
    return true;
  }
}
