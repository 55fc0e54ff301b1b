/**
 * Room for responses that are yet to be made, within the bounds of those that wait to be read. A response of unknown
 * size takes the room of the largest until its size is known, which is soon: a read of a store has a fraction of a
 * second; then it takes its own until it has left, or is measured with what waits to be read. So a request that finds
 * no room because of such responses waits for them, in order; one that finds none because of what is not read is
 * refused.
 */
import { DomainError } from '../../domain/errors.ts';
import type { Account } from './accounts.ts';
import type { OpenRequest, RequestBounds } from './open-request.ts';
import type { Bound } from './settings.ts';
import type { Look } from './unread.ts';

interface Waiter {
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (fault: DomainError) => void;
}

/** The bytes that are set aside for responses, for each request and in all, within a bound. */
export class Reservations implements Pick<RequestBounds, 'reserve' | 'settle'> {
  readonly #bound: Bound;
  /** Bytes of all that wait to be read, as last measured. */
  #unread = 0;
  /** Bytes that are set aside. */
  #reserved = 0;
  /** The waiters of each account, in order. There are no more than requests, which are bounded. */
  readonly #waiting = new Map<Account, Map<OpenRequest, Waiter>>();

  constructor(bound: Bound) {
    this.#bound = bound;
  }

  /** See `Place`. */
  reserve(request: OpenRequest, bytes: number): Promise<void> | undefined {
    const { account } = request;
    const waiters = this.#waiting.get(account);
    const verdict = this.#judge(account, bytes);
    if (verdict instanceof DomainError) throw verdict;
    // A newcomer does not overtake those that wait already.
    if (verdict === 'room' && waiters === undefined) {
      this.#give(request, bytes);
      return undefined;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { bytes, resolve, reject };
    if (waiters === undefined) this.#waiting.set(account, new Map([[request, waiter]]));
    else waiters.set(request, waiter);
    return promise;
  }

  /** See `Place`. */
  settle(request: OpenRequest, bytes: number): void {
    // The request was settled before, or its connection is gone and it has given back what it had.
    if (!request.unsettled) return;
    request.unsettled = false;
    this.#change(request, bytes - request.reserved);
    this.#wake();
  }

  /** Gives back what the request has, and ends its wait. */
  release(request: OpenRequest): void {
    const waiters = this.#waiting.get(request.account);
    const waiter = waiters?.get(request);
    if (waiter !== undefined) {
      waiters?.delete(request);
      waiter.reject(new DomainError('CANCELED', 'the caller left before there was room for its response'));
    }
    request.unsettled = false;
    this.#change(request, -request.reserved);
    this.#wake();
  }

  /** Takes over what a look measured of all requests together; it notes an account's part in the account itself. */
  measured(look: Pick<Look, 'unread' | 'reserved'>): void {
    this.#unread = look.unread;
    this.#reserved = look.reserved;
    this.#wake();
  }

  /** Whether there is room, or may be once sizes are known and what has left is measured, or why not. */
  #judge(account: Account, bytes: number): 'room' | 'wait' | DomainError {
    const { perAddress, total } = this.#bound;
    const [own, all] = [account.unread + bytes, this.#unread + bytes];
    if (own > perAddress) return tooMuchUnread();
    if (all > total) return noRoom();
    return own + account.reserved <= perAddress && all + this.#reserved <= total ? 'room' : 'wait';
  }

  #give(request: OpenRequest, bytes: number): void {
    request.unsettled = true;
    this.#change(request, bytes);
  }

  #change(request: OpenRequest, bytes: number): void {
    request.reserved += bytes;
    request.account.reserved += bytes;
    this.#reserved += bytes;
  }

  /**
   * Ends the wait of requests that now have room, or can have none. Accounts take turns: after one of its waiters an
   * account goes to the end, where this loop meets it again.
   */
  #wake(): void {
    for (const [account, waiters] of this.#waiting) {
      const [first] = waiters;
      if (first === undefined) {
        this.#waiting.delete(account);
        continue;
      }
      const [request, { bytes, resolve, reject }] = first;
      const verdict = this.#judge(account, bytes);
      if (verdict === 'wait') continue;
      waiters.delete(request);
      this.#waiting.delete(account);
      this.#waiting.set(account, waiters);
      if (verdict instanceof DomainError) {
        reject(verdict);
      } else {
        this.#give(request, bytes);
        resolve();
      }
    }
  }
}

/** The fault where an address has too many bytes waiting to be read. */
export function tooMuchUnread(): DomainError {
  return new DomainError('CONCURRENCY_LIMIT_EXCEEDED', 'too many responses to this address wait to be read', {
    retryAfter: 1,
  });
}

/** The fault where all addresses together have too many requests, or too many bytes waiting to be read. */
export function noRoom(): DomainError {
  return new DomainError('OVERLOADED', 'this process has no room for more requests; try again later', {
    retryAfter: 1,
  });
}
