/**
 * What each client address holds at the moment, and how fast it asks: one rate, of which everything that it does takes
 * as many requests as it costs. An address that holds nothing and has not asked recently has no account. What the
 * bounds did is counted for all addresses together, and logged.
 */
import type { Rate } from '../../domain/gcra.ts';
import type { Logger } from '../../logger.ts';
import { Line } from '../http/turns.ts';

/** One address. Each count is kept by the code that opens and closes what is counted. */
export class Account {
  readonly address: string;
  /** How many places it has: for connections, requests and refusals. */
  places = 0;
  /** Bytes of its responses that wait to be read, as last measured. */
  unread = 0;
  /** Bytes that are set aside for its responses that are yet to be made. */
  reserved = 0;
  /** When it has its whole burst again, milliseconds on the clock of `performance.now()`. */
  due = 0;
  /** When the address is served again. */
  blockedUntil = 0;
  /** What of its requests waits for a turn of the event loop. */
  readonly line = new Line();
  /** Until when it counts as one from which a valid key came. */
  keyedUntil = 0;

  constructor(address: string) {
    this.address = address;
  }
}

/** The accounts of all addresses that hold something or have asked recently; none yet. */
export class Accounts {
  readonly #accounts = new Map<string, Account>();

  get size(): number {
    return this.#accounts.size;
  }

  /** The account of an address, made when it is first asked for. */
  of(address: string): Account {
    let account = this.#accounts.get(address);
    if (account === undefined) {
      account = new Account(address);
      this.#accounts.set(address, account);
    }
    return account;
  }

  /** Forgets addresses that hold nothing, have used nothing of their rates, are not blocked and have shown no key. */
  forget(now: number): void {
    for (const account of this.#accounts.values()) {
      const { places, due, blockedUntil, keyedUntil } = account;
      if (places === 0 && Math.max(due, blockedUntil, keyedUntil) <= now) this.#accounts.delete(account.address);
    }
  }

  values(): Iterable<Account> {
    return this.#accounts.values();
  }
}

/** What counts for the rate of an address, in requests. */
export const COSTS = {
  /** A request, whatever it asks for. */
  request: 1,
  /** A request that is refused because there are too many, in place of `request`. */
  refused: 0.5,
  /** What no other limit counts, in addition to its request. */
  lookup: 49,
  /** A request that was taken back, in addition to it. */
  reset: 4,
  connection: 20,
} as const;

/** By which part of its burst an address may be beyond its rate before it is blocked. */
const BEYOND = 1 / 4;

/** Takes `cost` from an address's rate. Returns false, and takes nothing, if it has less left. */
export function take(account: Account, cost: number, rate: Rate | 'off', now: number): boolean {
  return rate === 'off' || count(account, cost, rate, rate.burst, now);
}

/** Counts what has happened, whether or not it is within the rate. Returns false if the address is to be blocked. */
export function note(account: Account, cost: number, rate: Rate | 'off', now: number): boolean {
  return rate === 'off' || count(account, cost, rate, rate.burst * (1 + BEYOND), now);
}

function count(account: Account, cost: number, { perSecond }: Rate, most: number, now: number): boolean {
  const due = Math.max(account.due, now) + (cost / perSecond) * 1000;
  // A rounding error of a nanosecond must not refuse the last request of a burst.
  if (due - now > (most / perSecond) * 1000 + 1e-6) return false;
  account.due = due;
  return true;
}

// Logs what the bounds did, at most once a second: in a flood, a line for each event would add to what it costs.

const INTERVAL = 1000;

/** Logs by how much each count of `tally` has grown since the last line, if any has. */
export function createReports(logger: Logger, tally: HoldingTally): (now: number) => void {
  let last = flat(tally);
  let next = 0;
  return (now) => {
    if (now < next) return;
    const current = flat(tally);
    const grown = Object.entries(current).flatMap(([name, count]) => {
      const more = count - (last[name] as number);
      return more > 0 ? [[name, more] as const] : [];
    });
    last = current;
    if (grown.length === 0) return;
    next = now + INTERVAL;
    logger.warn(Object.fromEntries(grown), 'bounds were reached: connections or requests were given up or refused');
  };
}

/** The counts by their names, but for those that are no sign of trouble by themselves. */
function flat({ refused, evicted, givenUp, beyondRate, blocked }: HoldingTally): Readonly<Record<string, number>> {
  return {
    refusedByAddress: refused.address,
    refusedByRate: refused.rate,
    refusedFull: refused.full,
    evicted,
    unread: givenUp.unread,
    unfinished: givenUp.unfinished,
    displaced: givenUp.displaced,
    beyondRate,
    blocked,
  };
}

// What the bounds of the wire did, counted from the start of the process. Each kind is a label value of a metric, so
// their number is fixed.

/** The counts, none at first. Each is kept by the code that does what is counted. */
export class HoldingTally {
  /**
   * Connections that were closed as they arrived: their address had too many, was beyond its rate, or there was no
   * other to close instead.
   */
  readonly refused = { address: 0, rate: 0, full: 0 };
  /** Connections that were idle, or on which nothing moved, and were closed to make room. */
  evicted = 0;
  /**
   * Requests that were given up: nobody read the response, the request never ended, or a newer one needed its place.
   */
  readonly givenUp = { unread: 0, unfinished: 0, displaced: 0 };
  /** Requests that were refused since their address sent too many; they have no line in the log. */
  beyondRate = 0;
  /** Requests that their callers took back. */
  resets = 0;
  /** Times that an address was not served for some seconds because it was too far beyond its rate. */
  blocked = 0;
}
