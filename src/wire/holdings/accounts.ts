/**
 * What each client address holds at the moment, and how fast it asks. An address that holds nothing and has not asked
 * recently has no account.
 */
import { judgeRate, type Rate } from '../../domain/gcra.ts';
import { createLine, type Line } from '../http/turns.ts';

/** One address. Each count is kept by the code that opens and closes what is counted. */
export interface Account {
  readonly address: string;
  /** How many places it has: for connections, requests and watches. */
  places: number;
  /** How many of its requests were refused a place and have a refusal that has not left. */
  refusals: number;
  /** Bytes of its responses that wait to be read, as last measured. */
  unread: number;
  /**
   * Bytes that are set aside for its responses that are yet to be made, and the part of them for responses whose size
   * is not known yet.
   */
  reserved: number;
  unsettled: number;
  /**
   * When its next connection, request, lookup and reset would be due, milliseconds on the clock of
   * `performance.now()`: see `judgeRate`.
   */
  readonly due: { connection: number; request: number; lookup: number; reset: number };
  /** When the address is served again. */
  blockedUntil: number;
  /** What of its requests waits for a turn of the event loop. */
  readonly line: Line;
  /** Until when it counts as one from which a valid key came. */
  keyedUntil: number;
}

/** The accounts of all addresses that hold something or have asked recently. */
export interface Accounts {
  /** The account of an address, made when it is first asked for. */
  of(address: string): Account;
  /** Forgets addresses that hold nothing, have used nothing of their rates, are not blocked and have shown no key. */
  forget(now: number): void;
  values(): Iterable<Account>;
  readonly size: number;
}

/** The accounts of a port, none yet. */
export function createAccounts(): Accounts {
  const accounts = new Map<string, Account>();
  return {
    of(address) {
      let account = accounts.get(address);
      if (account === undefined) {
        account = {
          address,
          places: 0,
          refusals: 0,
          unread: 0,
          reserved: 0,
          unsettled: 0,
          due: { connection: 0, request: 0, lookup: 0, reset: 0 },
          blockedUntil: 0,
          line: createLine(),
          keyedUntil: 0,
        };
        accounts.set(address, account);
      }
      return account;
    },
    forget(now) {
      for (const account of accounts.values()) {
        const { places, refusals, due, blockedUntil, keyedUntil } = account;
        if (places + refusals > 0) continue;
        if (Math.max(due.connection, due.request, due.lookup, due.reset, blockedUntil, keyedUntil) <= now)
          accounts.delete(account.address);
      }
    },
    values: () => accounts.values(),
    get size() {
      return accounts.size;
    },
  };
}

/** Takes one from an address's rate. Returns false, and takes nothing, if it has none left. */
export function take(account: Account, what: keyof Account['due'], rate: Rate | 'off', now: number): boolean {
  if (rate === 'off') return true;
  const verdict = judgeRate(rate, account.due[what], now);
  if (verdict.kind === 'beyond') return false;
  account.due[what] = verdict.tat;
  return true;
}
