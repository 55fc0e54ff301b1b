/**
 * What clients hold of this process: connections, requests, watches, and responses that wait to be read. All of it is counted for each address and in
 * all, and bounded; where a bound is reached what has been idle longest goes, not the newcomer.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { clientAddress, type TrustedProxies } from '../../domain/client-address.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../logger.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpRequest } from '../http/messages.ts';
import { type Account, createAccounts, take } from './accounts.ts';
import { createConnections } from './connections.ts';
import { type Connection, closeConnection, giveUp, OpenRequest, type RequestBounds, streamOf } from './open-request.ts';
import { createReports } from './reports.ts';
import { createReservations, noRoom, tooMuchUnread } from './reservations.ts';
import type { HoldingSettings } from './settings.ts';
import { createTally, type HoldingTally } from './tally.ts';
import { createLook, type Look, MOST_TIME } from './unread.ts';
import { createWatches } from './watches.ts';

/** Milliseconds between looks. */
const LOOK_INTERVAL = 500;
/** Milliseconds for which an address is not served after it took back, or sent, more than it may. */
const BLOCK_TIME = 5000;
/** Milliseconds between searches for a request to displace: in a flood each search would look at all of them. */
const SEARCH_INTERVAL = 20;
/** Milliseconds that a request has to arrive before a newer one may take its place. */
const LEAST_ARRIVAL = 1000;

/** What is held at the moment, and what was done about it. */
export interface HoldingState {
  readonly connections: number;
  readonly requests: number;
  readonly watches: number;
  readonly unread: number;
  readonly addresses: number;
  readonly tally: HoldingTally;
}

/** Counts what clients hold of the port, and says what there is no room for. */
export interface Holdings {
  /** Counts a connection as it is accepted. Returns whether it may stay; else it has been closed. */
  accept(socket: Socket): boolean;
  /** A socket or session that an accepted connection became. */
  bind(socket: Socket): void;
  bindSession(session: ServerHttp2Session): void;
  /** The connection that a request came on; undefined if it is gone. */
  find(request: HttpRequest): Connection | undefined;
  /**
   * Counts a request until `close`. Returns why it may not be served, if so. `end` is called when the connection is gone and `close` has not been: Node
   * does not say of every response that it is over. It calls `close`, and does nothing where the response has ended the exchange.
   */
  open(exchange: Exchange, connection: Connection, end: () => void): DomainError | undefined;
  close(exchange: Exchange): void;
  /** Notes a request that was taken back before it became an exchange. */
  reset(session: ServerHttp2Session | undefined, headers: IncomingHttpHeaders): void;
  /** Counts a stream that is meant to stay open, see `Watches`. */
  watch(exchange: Exchange, end: () => void): () => void;
  state(): HoldingState;
  stop(): void;
}

/** Empty holdings. */
export function createHoldings(options: {
  readonly settings: HoldingSettings;
  readonly trustedProxies: TrustedProxies;
  readonly logger: Logger;
  /** Milliseconds after which a request without an answer is given up. */
  readonly mostTime?: number;
}): Holdings {
  const { settings, trustedProxies, logger, mostTime = MOST_TIME } = options;
  const accounts = createAccounts();
  const tally = createTally();
  const connections = createConnections({ settings, trustedProxies, accounts, tally });
  const watches = createWatches(settings, tally);
  const look = createLook({ settings, mostTime, connections, accounts, tally });
  const report = createReports(logger, tally);
  let requests = 0;
  const reservations = createReservations(settings.unread);
  let last: Look = { unread: 0, reserved: 0 };
  let nextSearch = 0;

  const timer = setInterval(() => {
    const now = performance.now();
    last = look(now);
    reservations.measured(last);
    accounts.forget(now);
    report(now);
  }, LOOK_INTERVAL);
  timer.unref();

  const accountOf = ({ account, socket }: Connection, { 'x-forwarded-for': forwarded }: IncomingHttpHeaders): Account =>
    account ?? accounts.of(clientAddress(socket.remoteAddress, forwarded, trustedProxies));

  const block = (account: Account, now: number): void => {
    account.blockedUntil = now + BLOCK_TIME;
    tally.blocked += 1;
    for (const connection of [...connections.values()]) if (connection.account === account) closeConnection(connection);
  };

  /** Counts work that was for nothing: a request that was taken back, or refused because there were too many. */
  const noteWaste = (account: Account, now: number): void => {
    if (account.blockedUntil <= now && !take(account, 'reset', settings.resetRate, now)) block(account, now);
  };
  const noteReset = (account: Account, now: number): void => {
    tally.resets += 1;
    noteWaste(account, now);
  };

  /** Gives up the request that has been arriving longest, and says whether there was one. */
  const displace = (account: Account | undefined, now: number): boolean => {
    if (now < nextSearch) return false;
    nextSearch = now + SEARCH_INTERVAL;
    let oldest: OpenRequest | undefined;
    for (const connection of connections.values())
      for (const request of connection.requests) {
        if (account !== undefined && request.account !== account) continue;
        if (!request.arriving || request.exchange.record.givenUp !== undefined) continue;
        if (now - request.exchange.startedAt < LEAST_ARRIVAL) continue;
        if (oldest === undefined || request.exchange.startedAt < oldest.exchange.startedAt) oldest = request;
      }
    if (oldest === undefined) return false;
    giveUp(oldest, 'displaced');
    tally.givenUp.displaced += 1;
    return true;
  };

  const refusal = (account: Account, now: number): DomainError | undefined => {
    if (account.blockedUntil > now) return tooManyRequests((account.blockedUntil - now) / 1000);
    if (!take(account, 'request', settings.requestRate, now)) {
      noteWaste(account, now);
      return tooManyRequests(1);
    }
    if (account.requests > settings.requests.perAddress && !displace(account, now))
      return new DomainError('CONCURRENCY_LIMIT_EXCEEDED', 'too many requests in progress', { retryAfter: 1 });
    if (account.unread + account.reserved > settings.unread.perAddress) return tooMuchUnread();
    if (requests > settings.requests.total && !displace(undefined, now)) return noRoom();
    return undefined;
  };

  const bounds: RequestBounds = {
    meter({ account, exchange }) {
      if (take(account, 'lookup', settings.lookupRate, exchange.startedAt)) return;
      noteWaste(account, exchange.startedAt);
      throw tooManyRequests(1);
    },
    reserve: reservations.reserve,
    settle: reservations.settle,
  };

  return {
    accept: (socket) => connections.accept(socket, performance.now()) !== undefined,
    bind: (socket) => connections.bind(socket),
    bindSession: (session) => connections.bindSession(session),
    find: (request) => connections.of(request),
    open(exchange, connection, end) {
      const account = accountOf(connection, exchange.request.headers);
      const request = new OpenRequest({ exchange, connection, account, end, bounds });
      exchange.placed(request);
      connections.begin(connection, request);
      account.requests += 1;
      requests += 1;
      return refusal(account, exchange.startedAt);
    },
    close(exchange) {
      const { place: request } = exchange;
      if (!(request instanceof OpenRequest)) return;
      const { account, connection } = request;
      exchange.placed(undefined);
      connections.end(connection, request);
      account.requests -= 1;
      reservations.release(request);
      requests -= 1;
      const { givenUp, endedAt } = exchange.record;
      if (givenUp === undefined && wasTakenBack(exchange)) noteReset(account, endedAt);
    },
    reset(session, headers) {
      const connection = connections.ofSession(session);
      if (connection !== undefined) noteReset(accountOf(connection, headers), performance.now());
    },
    watch(exchange, end) {
      const { place } = exchange;
      if (!(place instanceof OpenRequest)) return () => {};
      place.watching = true;
      return watches.open(place, end);
    },
    state: () => ({
      connections: connections.size,
      requests,
      watches: watches.size,
      unread: last.unread,
      addresses: accounts.size,
      tally,
    }),
    stop: () => clearInterval(timer),
  };
}

/** Whether the caller left before the response had. A stream that is reset has a code; one whose code says that nothing is wrong was not read. */
function wasTakenBack({ request, response, departed }: Exchange): boolean {
  return departed || !response.writableFinished || (streamOf(request)?.rstCode ?? 0) !== 0;
}

function tooManyRequests(seconds: number): DomainError {
  return new DomainError('RATE_LIMIT_EXCEEDED', 'too many requests from this address', {
    retryAfter: Math.max(1, Math.ceil(seconds)),
  });
}
