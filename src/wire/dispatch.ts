/** Where every HTTP request arrives: it becomes an exchange and goes to the handler of its protocol. */

import { DomainError } from '../domain/errors.ts';
import type { Holdings } from './holdings/holdings.ts';
import { answerPreflight, type Cors } from './http/cors.ts';
import { Exchange, type Observer, type ProtocolHandler } from './http/exchange.ts';
import {
  assertUniqueHeaders,
  type HttpRequest,
  type HttpResponse,
  isContinue,
  isHttp2,
  pathOf,
  sendContinue,
} from './http/messages.ts';
import type { RpcHandler } from './rpc/handler.ts';

/** What a dispatcher hands exchanges to. */
export interface DispatchOptions {
  readonly rest: ProtocolHandler;
  readonly rpc: RpcHandler;
  readonly holdings: Holdings;
  readonly observers: readonly Observer[];
  /** Undefined where no origin is named. */
  readonly cors: Cors | undefined;
}

/** A dispatcher over the protocols. */
export class Dispatch {
  readonly #options: DispatchOptions;

  constructor(options: DispatchOptions) {
    this.#options = options;
  }

  /** Answers one request. Never throws. */
  take(request: HttpRequest, response: HttpResponse): void {
    const { rest, rpc, holdings, cors } = this.#options;
    const connection = holdings.connections.of(request);
    // What comes behind the last answer of a connection is not wanted.
    if (connection?.ending === true || (!isHttp2(request) && request.socket.writableEnded)) return;
    const exchange = new Exchange(request, response);
    let over = false;
    const end = (): void => {
      if (over) return;
      over = true;
      this.#end(exchange, flood);
    };
    response.on('close', end);
    // A peer may reset its stream at any time, which is no error of this process.
    response.on('error', () => exchange.depart());
    // Node emits an error if anybody listened when the error was created; whoever read the body may have stopped
    // listening by the time it is emitted, and without a listener it would be thrown.
    request.on('error', ignore);
    const path = pathOf(request);
    let refused = connection === undefined ? undefined : holdings.open(exchange, connection, end);
    const flood = refused?.reason === 'RATE_LIMIT_EXCEEDED';
    // A trusted proxy's connection carries the requests of others, too.
    let last = refused !== undefined && connection?.account !== undefined;
    let closing = last;
    if (request.headers.upgrade !== undefined && !isHttp2(request)) {
      // There is no other protocol to upgrade to, and Node discards what else it has read: what follows could begin in
      // the middle of a request.
      last = true;
      response.shouldKeepAlive = false;
    }
    if (last && connection !== undefined && !isHttp2(request)) connection.ending = true;
    const preflight = cors?.mark(exchange) === true;
    try {
      if (refused === undefined) assertMeaning(request);
      if (refused === undefined && preflight) {
        answerPreflight(exchange);
        return;
      }
    } catch (error) {
      refused = error as DomainError;
      closing = true;
    }
    const protocol = rpc.takes(request, path) ? rpc : rest;
    if (refused !== undefined) {
      protocol.refuse(exchange, refused, closing);
      return;
    }
    const { place } = exchange;
    // The connections of an address have had their turn; whose request a proxy's connection carries is known only now.
    if (place === undefined || connection?.account !== undefined || isHttp2(request)) handle(protocol, exchange, path);
    else void place.turn(1).then(() => handle(protocol, exchange, path));
  }

  /** Ends an exchange whose response is closed. Those of a `flood` are counted, and reported together. */
  #end(exchange: Exchange, flood: boolean): void {
    const { holdings, observers } = this.#options;
    exchange.ended();
    holdings.close(exchange);
    if (flood) return;
    for (const observe of observers) observe(exchange);
  }
}

function handle(protocol: ProtocolHandler, exchange: Exchange, path: string): void {
  const { request, response } = exchange;
  if (exchange.departed) return;
  if (request.headers.expect !== undefined) sendContinue(request, response);
  void protocol.handle(exchange, path);
}

function ignore(): void {}

/**
 * @throws DomainError if it is ambiguous what the request means, or if its headers ask for what this server does not
 * do.
 */
function assertMeaning(request: HttpRequest): void {
  assertUniqueHeaders(request);
  const { expect, 'transfer-encoding': codings } = request.headers;
  if (expect !== undefined && !isContinue(expect)) {
    throw new DomainError('EXPECTATION_FAILED', 'only Expect: 100-continue is understood');
  }
  if (codings !== undefined && codings !== 'chunked') assertCodings(codings);
}

/**
 * RFC 9112, 6.1: `chunked` comes last and once, or the end of the body is unknown; other codings are legal, but none is
 * decoded here. The RFC's 501 would be a fault of the server's, which nothing that a caller sends may cause.
 */
function assertCodings(codings: string): void {
  const names = codings.split(',').map((name) => name.trim().toLowerCase());
  if (names.indexOf('chunked') !== names.length - 1) {
    throw new DomainError('MALFORMED_REQUEST', 'of the transfer codings the last must be chunked, and no other');
  }
  if (names.length > 1) {
    throw new DomainError('UNSUPPORTED_ENCODING', 'the only transfer coding that is decoded is chunked');
  }
}
