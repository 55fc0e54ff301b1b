/**
 * What clients hold of this process: connections, requests, refusals that have not left, and responses that wait to be
 * read. All of it is counted for each address and in all, and bounded; where a bound is reached, the address that holds
 * most gives up what is idle or makes no progress, not the newcomer. A request that is refused takes the place of no
 * other request.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { clientAddress, type TrustedProxies } from '../../domain/client-address.ts';
import { DomainError } from '../../domain/errors.ts';
import { retryAfterOf } from '../../engine/errors.ts';
import type { Logger } from '../../logger.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Line } from '../http/turns.ts';
import { type Account, Accounts, COSTS, createReports, HoldingTally, note, take } from './accounts.ts';
import { Connections } from './connections.ts';
import { type Connection, closeConnection, giveUp, OpenRequest, type RequestBounds, streamOf } from './open-request.ts';
import { Places } from './places.ts';
import { noRoom, Reservations, tooMuchUnread } from './reservations.ts';
import type { HoldingSettings } from './settings.ts';
import { type Look, type LookOptions, lookOver, MOST_TIME } from './unread.ts';

/** Milliseconds between looks over what is held. */
const LOOK_INTERVAL = 500;
/** Milliseconds for which an address is not served after it went too far beyond its rate. */
const BLOCK_TIME = 5000;
/** Milliseconds that a request has to arrive, and its response to be read, before a newer one may take its place. */
const LEAST_TIME = 1000;

/** What is held at the moment, and what was done about it. */
export interface HoldingState {
  readonly connections: number;
  /** Those that have a place, and those that were refused one and whose refusal has not left. */
  readonly requests: number;
  readonly refusals: number;
  readonly watches: number;
  readonly unread: number;
  readonly addresses: number;
  readonly tally: HoldingTally;
}

/** What bounds holdings, and where that is logged. */
export interface HoldingsOptions {
  readonly settings: HoldingSettings;
  readonly trustedProxies: TrustedProxies;
  readonly logger: Logger;
  /** Milliseconds after which a request without an answer is given up. */
  readonly mostTime?: number;
}

/**
 * Counts what clients hold of the port, and refuses what there is no room for. Looks over it every half second until
 * `stop`.
 */
export class Holdings {
  readonly #options: HoldingsOptions;
  readonly #accounts = new Accounts();
  readonly #tally = new HoldingTally();
  readonly #reservations: Reservations;
  readonly #places: Places<OpenRequest>;
  readonly #refusals: Places<OpenRequest>;
  readonly #bounds: RequestBounds;
  readonly #timer: NodeJS.Timeout;
  #last: Look = { unread: 0, reserved: 0, watches: 0 };
  /** The open connections, each of which is counted as it is accepted. */
  readonly connections: Connections;

  constructor(options: HoldingsOptions) {
    this.#options = options;
    const { settings, trustedProxies, logger, mostTime = MOST_TIME } = options;
    const [accounts, tally] = [this.#accounts, this.#tally];
    const displace = (request: OpenRequest): void => this.#displace(request);
    this.connections = new Connections({ settings, trustedProxies, accounts, tally, displace });
    this.#reservations = new Reservations(settings.unread);
    this.#places = new Places({
      bound: settings.requests,
      spareSince: ({ stalledSince }, now) =>
        stalledSince === undefined || now - stalledSince < LEAST_TIME ? undefined : stalledSince,
      giveUp: (request) => {
        displace(request);
        // A watch ends in order, unless what it has told already waits to be read.
        if (request.watch !== undefined && request.waiting === 0) request.watch.end();
        else giveUp(request, 'displaced');
      },
    });
    this.#refusals = new Places({
      bound: settings.requests,
      spareSince: ({ exchange }) => exchange.startedAt,
      giveUp: (request) => {
        tally.givenUp.unread += 1;
        giveUp(request, 'unread');
        // A trusted proxy's connection carries the requests of others, too.
        if (request.connection.account !== undefined) closeConnection(request.connection);
      },
    });
    this.#bounds = {
      meter: (request) => this.#meter(request),
      reserve: (request, bytes) => this.#reservations.reserve(request, bytes),
      settle: (request, bytes) => this.#reservations.settle(request, bytes),
    };
    const looking: LookOptions = { settings, mostTime, connections: this.connections, accounts, tally };
    const report = createReports(logger, tally);
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.#last = lookOver(looking, now);
      this.#reservations.measured(this.#last);
      accounts.forget(now);
      report(now);
    }, LOOK_INTERVAL);
    this.#timer.unref();
  }

  /**
   * Counts a request until `close`. Returns why it may not be served, and then it has no place; undefined if it may.
   * `end` is called when the connection is gone and `close` has not been called, since Node does not report the end of
   * every response. It must call `close`, and do nothing where the response has ended the exchange.
   */
  open(exchange: Exchange, connection: Connection, end: () => void): DomainError | undefined {
    const account = this.#accountOf(connection, exchange.request.headers);
    const request = new OpenRequest({ exchange, connection, account, end, bounds: this.#bounds });
    exchange.place = request;
    connection.requests.add(request);
    const refused = this.#refusal(request, exchange.startedAt);
    if (refused === undefined) {
      this.#places.take(account, request);
    } else {
      // All refusals can be given up, so there is room. An address that does not read them loses their connections.
      this.#refusals.hasOwn(account, exchange.startedAt);
      this.#refusals.has(account, exchange.startedAt);
      this.#refusals.take(account, request);
    }
    return refused;
  }

  /** Notes that a request is over, and releases what it holds. */
  close(exchange: Exchange): void {
    const { place: request } = exchange;
    if (!(request instanceof OpenRequest)) return;
    const { account, connection } = request;
    exchange.place = undefined;
    this.connections.end(connection, request);
    this.#places.give(account, request);
    this.#refusals.give(account, request);
    this.#reservations.release(request);
    const { givenUp, endedAt } = exchange.record;
    if (givenUp === undefined && wasTakenBack(exchange)) this.#noteReset(account, COSTS.reset, endedAt);
  }

  /** In which a request on a connection waits for its turn. */
  lineOf(connection: Connection, headers: IncomingHttpHeaders): Line {
    return this.#accountOf(connection, headers).line;
  }

  /** Notes a request that was taken back before it became an exchange, or a frame that only makes work. */
  reset(connection: Connection, headers: IncomingHttpHeaders = {}): void {
    this.#noteReset(this.#accountOf(connection, headers), COSTS.request + COSTS.reset, performance.now());
  }

  /**
   * Notes that a response is a stream that is meant to stay open. It gives way to newer requests, and ends after a
   * while, so that callers spread over the replicas anew: then `end` is called, perhaps again and again until it has.
   */
  watch({ place }: Exchange, end: () => void): void {
    if (!(place instanceof OpenRequest)) return;
    const time = this.#options.settings.watchTime * (0.9 + Math.random() * 0.2);
    place.watch = { end, until: performance.now() + time };
  }

  /** What is held now. */
  state(): HoldingState {
    return {
      connections: this.connections.size,
      requests: this.#places.size,
      refusals: this.#refusals.size,
      watches: this.#last.watches,
      unread: this.#last.unread,
      addresses: this.#accounts.size,
      tally: this.#tally,
    };
  }

  /** Ends the looks at what is held. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #accountOf({ account, socket }: Connection, { 'x-forwarded-for': forwarded }: IncomingHttpHeaders): Account {
    const { trustedProxies } = this.#options;
    return account ?? this.#accounts.of(clientAddress(socket.remoteAddress, forwarded, trustedProxies));
  }

  /** Why a request may not be served; undefined if it may. */
  #refusal(request: OpenRequest, now: number): DomainError | undefined {
    const { account } = request;
    const { requestRate, unread } = this.#options.settings;
    const blocked = account.blockedUntil > now;
    if (blocked || !take(account, COSTS.request, requestRate, now)) {
      this.#tally.beyondRate += 1;
      this.#note(account, COSTS.refused, now);
      return tooManyRequests(blocked ? account.blockedUntil - now : 0);
    }
    if (!this.#places.hasOwn(account, now))
      return new DomainError('CONCURRENCY_LIMIT_EXCEEDED', 'too many requests in progress', { retryAfter: 1 });
    if (account.unread + account.reserved > unread.perAddress) return tooMuchUnread();
    if (!this.#places.has(account, now) || !this.connections.hasRoomFor(request, now)) return noRoom();
    return undefined;
  }

  /** Takes back the place of a request that is given up for another. */
  #displace(request: OpenRequest): void {
    this.#places.give(request.account, request);
    request.exchange.givenUp('displaced');
    this.#tally.givenUp.displaced += 1;
  }

  #meter({ account }: OpenRequest): void {
    // A stream of reflection may have begun long ago.
    const now = performance.now();
    if (!take(account, COSTS.lookup, this.#options.settings.requestRate, now)) throw tooManyRequests(0);
  }

  #noteReset(account: Account, cost: number, now: number): void {
    this.#tally.resets += 1;
    this.#note(account, cost, now);
  }

  /** Counts what is done already, and ends an address's connections for a while if that was far too much. */
  #note(account: Account, cost: number, now: number): void {
    if (account.blockedUntil > now || note(account, cost, this.#options.settings.requestRate, now)) return;
    account.blockedUntil = now + BLOCK_TIME;
    this.#tally.blocked += 1;
    for (const connection of [...this.connections.values()])
      if (connection.account === account) closeConnection(connection);
  }
}

/**
 * Whether the caller left before its response did. A stream that was reset has a code. NO_ERROR, which is 0, is that of
 * a stream whose response left and whose request was not read to its end.
 */
function wasTakenBack({ request, response, departed }: Exchange): boolean {
  return departed || !response.writableFinished || (streamOf(request)?.rstCode ?? 0) !== 0;
}

function tooManyRequests(milliseconds: number): DomainError {
  return new DomainError('RATE_LIMIT_EXCEEDED', 'too many requests from this address', {
    retryAfter: retryAfterOf(milliseconds),
  });
}
