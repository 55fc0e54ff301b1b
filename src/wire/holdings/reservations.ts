/**
 * Room for responses that are yet to be made, within the bounds of those that wait to be read. A response of unknown
 * size takes the room of the largest until its size is known, which is soon: a read of a store has a fraction of a
 * second. So a request that finds no room because of such responses waits for them, in order; one that finds none
 * because of responses whose size is known is refused at once.
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
  /** Bytes that are set aside, and the part of them for responses of unknown size. */
  #reserved = 0;
  #unsettled = 0;
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
      this.#change(request, bytes, bytes);
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
    if (request.unsettled === 0) return;
    this.#change(request, bytes - request.unsettled, -request.unsettled);
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
    this.#change(request, -request.reserved, -request.unsettled);
    this.#wake();
  }

  /** Takes over what a look measured of all requests together; it notes an account's part in the account itself. */
  measured(look: Pick<Look, 'unread' | 'reserved'>): void {
    this.#unread = look.unread;
    this.#reserved = look.reserved;
    this.#wake();
  }

  /** Whether there is room, or will be once sizes are known, or why not. */
  #judge(account: Account, bytes: number): 'room' | 'wait' | DomainError {
    const { perAddress, total } = this.#bound;
    const own = account.unread + account.reserved + bytes;
    const all = this.#unread + this.#reserved + bytes;
    if (own - account.unsettled > perAddress) return tooMuchUnread();
    if (all - this.#unsettled > total) return noRoom();
    return own <= perAddress && all <= total ? 'room' : 'wait';
  }

  #change(request: OpenRequest, bytes: number, unsettledBytes: number): void {
    request.reserved += bytes;
    request.account.reserved += bytes;
    this.#reserved += bytes;
    request.unsettled += unsettledBytes;
    request.account.unsettled += unsettledBytes;
    this.#unsettled += unsettledBytes;
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
        this.#change(request, bytes, bytes);
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
