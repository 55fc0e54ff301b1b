/**
 * What each client address holds at the moment, and how fast it asks. An address that holds nothing and has not asked
 * recently has no account. What the bounds did is counted for all addresses together, and logged.
 */
import { judgeRate, type Rate } from '../../domain/gcra.ts';
import type { Logger } from '../../logger.ts';
import { Line } from '../http/turns.ts';

/** One address. Each count is kept by the code that opens and closes what is counted. */
export class Account {
  readonly address: string;
  /** How many places it has: for connections, requests and refusals. */
  places = 0;
  /** Bytes of its responses that wait to be read, as last measured. */
  unread = 0;
  /**
   * Bytes that are set aside for its responses that are yet to be made, and the part of them for responses whose size
   * is not known yet.
   */
  reserved = 0;
  unsettled = 0;
  /**
   * When its next connection, request, lookup and reset would be due, milliseconds on the clock of
   * `performance.now()`: see `judgeRate`.
   */
  readonly due = { connection: 0, request: 0, lookup: 0, reset: 0 };
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
      if (places > 0) continue;
      if (Math.max(due.connection, due.request, due.lookup, due.reset, blockedUntil, keyedUntil) <= now)
        this.#accounts.delete(account.address);
    }
  }

  values(): Iterable<Account> {
    return this.#accounts.values();
  }
}

/** Takes one from an address's rate. Returns false, and takes nothing, if it has none left. */
export function take(account: Account, what: keyof Account['due'], rate: Rate | 'off', now: number): boolean {
  if (rate === 'off') return true;
  const verdict = judgeRate(rate, account.due[what], now);
  if (verdict.kind === 'beyond') return false;
  account.due[what] = verdict.tat;
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
   * Connections that were closed as they arrived: their address had too many, opened too many a second, or there was no
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
  /** Times that an address was not served for some seconds because it took back, or sent, too many requests. */
  blocked = 0;
}
