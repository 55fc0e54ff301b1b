/**
 * Room for responses that are yet to be made, within the bounds of those that wait to be read. A response of unknown size takes the most that it may have until
 * it is known, which is soon: a read of a store has a fraction of a second. So a request that finds no room because of such ones waits for them, in
 * order; one that finds none because of answers that are as large as they take, and wait to be read, is refused at once.
 */
import { DomainError } from '../../domain/errors.ts';
import type { Account } from './accounts.ts';
import type { OpenRequest, RequestBounds } from './open-request.ts';
import type { Bound } from './settings.ts';
import type { Look } from './unread.ts';

/** The bytes that are set aside for responses, of each request and of all together. */
export interface Reservations extends Pick<RequestBounds, 'reserve' | 'settle'> {
  /** Gives back what the request has, and ends its wait. */
  release(request: OpenRequest): void;
  /** What was measured of all requests; the accounts have theirs. */
  measured(look: Look): void;
}

interface Waiter {
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (fault: DomainError) => void;
}

/** Nothing reserved, within this bound of bytes. */
export function createReservations(bound: Bound): Reservations {
  /** Bytes of all: those that wait to be read as last measured, those set aside, and of these the ones for responses of unknown size. */
  let unread = 0;
  let reserved = 0;
  let unsettled = 0;
  /** Each account's in order. No more than there are requests, which are bounded. */
  const waiting = new Map<Account, Map<OpenRequest, Waiter>>();

  /** Whether there is room, or will be once sizes are known, or why not. */
  const judge = (account: Account, bytes: number): 'room' | 'wait' | DomainError => {
    const own = account.unread + account.reserved + bytes;
    const all = unread + reserved + bytes;
    if (own - account.unsettled > bound.perAddress) return tooMuchUnread();
    if (all - unsettled > bound.total) return noRoom();
    return own <= bound.perAddress && all <= bound.total ? 'room' : 'wait';
  };

  const change = (request: OpenRequest, bytes: number, unsettledBytes: number): void => {
    request.reserved += bytes;
    request.account.reserved += bytes;
    reserved += bytes;
    request.unsettled += unsettledBytes;
    request.account.unsettled += unsettledBytes;
    unsettled += unsettledBytes;
  };

  /** Lets those go to whom there is something to say. Accounts take turns: one that was served goes to the end, and is met there again. */
  const wake = (): void => {
    for (const [account, waiters] of waiting) {
      const [first] = waiters;
      if (first === undefined) {
        waiting.delete(account);
        continue;
      }
      const [request, { bytes, resolve, reject }] = first;
      const verdict = judge(account, bytes);
      if (verdict === 'wait') continue;
      waiters.delete(request);
      waiting.delete(account);
      waiting.set(account, waiters);
      if (verdict instanceof DomainError) {
        reject(verdict);
      } else {
        change(request, bytes, bytes);
        resolve();
      }
    }
  };

  return {
    reserve(request, bytes) {
      const { account } = request;
      const waiters = waiting.get(account);
      const verdict = judge(account, bytes);
      if (verdict instanceof DomainError) throw verdict;
      // Not before those that wait already.
      if (verdict === 'room' && waiters === undefined) {
        change(request, bytes, bytes);
        return undefined;
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const waiter: Waiter = { bytes, resolve, reject };
      if (waiters === undefined) waiting.set(account, new Map([[request, waiter]]));
      else waiters.set(request, waiter);
      return promise;
    },
    settle(request, bytes) {
      // Also of one whose connection is gone, and which has given back what it had.
      if (request.unsettled === 0) return;
      change(request, bytes - request.unsettled, -request.unsettled);
      wake();
    },
    release(request) {
      const waiters = waiting.get(request.account);
      const waiter = waiters?.get(request);
      if (waiter !== undefined) {
        waiters?.delete(request);
        waiter.reject(new DomainError('CANCELED', 'the caller left before there was room for its response'));
      }
      change(request, -request.reserved, -request.unsettled);
      wake();
    },
    measured(look) {
      unread = look.unread;
      reserved = look.reserved;
      wake();
    },
  };
}

/** The address has too many bytes waiting to be read. */
export function tooMuchUnread(): DomainError {
  return new DomainError('CONCURRENCY_LIMIT_EXCEEDED', 'too many responses to this address wait to be read', {
    retryAfter: 1,
  });
}

/** All together have. */
export function noRoom(): DomainError {
  return new DomainError('OVERLOADED', 'this process has no room for more requests; try again later', {
    retryAfter: 1,
  });
}
