/** Where every HTTP request arrives: it becomes an exchange and goes to the protocol that its path belongs to. */

import { DomainError } from '../domain/errors.ts';
import type { Logger } from '../logger.ts';
import { logExchange } from './access-log.ts';
import type { Holdings } from './holdings/holdings.ts';
import { Exchange, type Observer } from './http/exchange.ts';
import { isContinue, sendContinue } from './http/expect.ts';
import { type HttpRequest, type HttpResponse, isHttp2, pathOf } from './http/messages.ts';
import type { ProtocolHandler } from './http/protocol-handler.ts';
import { assertUniqueHeaders } from './http/unique-headers.ts';
import type { RpcHandler } from './rpc/handler.ts';

/** Answers one request. Never throws. */
export type Dispatch = (request: HttpRequest, response: HttpResponse) => void;

/** A dispatcher over the protocols. */
export function createDispatch(options: {
  readonly rest: ProtocolHandler;
  readonly rpc: RpcHandler;
  readonly holdings: Pick<Holdings, 'find' | 'open' | 'close'>;
  readonly logger: Logger;
  readonly observers: readonly Observer[];
}): Dispatch {
  const { rest, rpc, holdings, logger, observers } = options;
  return (request, response) => {
    const connection = holdings.find(request);
    if (connection?.ending === true) return;
    const exchange = new Exchange(request, response);
    let over = false;
    const end = (): void => {
      if (over) return;
      over = true;
      exchange.ended();
      holdings.close(exchange);
      for (const observe of observers) observe(exchange);
      logExchange(logger, exchange);
    };
    response.on('close', end);
    // A peer that resets its stream is no fault of ours.
    response.on('error', () => exchange.depart());
    // Node emits an error if anybody listened when it was made; whoever read the body may have stopped
    // listening by then.
    request.on('error', ignore);
    const path = pathOf(request);
    let refused = connection === undefined ? undefined : holdings.open(exchange, connection, end);
    let last = refused !== undefined;
    if (request.headers.upgrade !== undefined && !isHttp2(request)) {
      // No other protocol is spoken here, and Node throws away what else it had read: what follows cannot be told from
      // the middle of a request.
      last = true;
      response.shouldKeepAlive = false;
    }
    if (last && connection !== undefined && !isHttp2(request)) connection.ending = true;
    try {
      if (refused === undefined) assertMeaning(request);
    } catch (error) {
      refused = error as DomainError;
    }
    const protocol = rpc.takes(request, path) ? rpc : rest;
    if (refused !== undefined) {
      protocol.refuse(exchange, refused);
      return;
    }
    if (request.headers.expect !== undefined) sendContinue(request, response);
    void protocol.handle(exchange, path);
  };
}

function ignore(): void {}

/**
 * @throws DomainError if it cannot be said what the request means, or this server does not do what it asks for
 * before it is read.
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
 * RFC 9112, 6.1: chunks come last and once, or the end of the body is anybody's guess; other codings are legal, but
 * none is decoded here.
 */
function assertCodings(codings: string): void {
  const names = codings.split(',').map((name) => name.trim().toLowerCase());
  if (names.indexOf('chunked') !== names.length - 1) {
    throw new DomainError('MALFORMED_REQUEST', 'of the transfer codings the last must be chunked, and no other');
  }
  if (names.length > 1) throw new DomainError('UNIMPLEMENTED', 'the only transfer coding that is decoded is chunked');
}
