/** Where every HTTP request arrives: it becomes an exchange and goes to the protocol that its path belongs to. */

import { DomainError } from '../domain/errors.ts';
import type { Logger } from '../logger.ts';
import { logExchange } from './access-log.ts';
import { Exchange } from './exchange.ts';
import { visibleFault } from './faults.ts';
import { type HttpRequest, type HttpResponse, pathOf } from './http.ts';
import type { Observer } from './observer.ts';
import type { RestHandler } from './rest/handler.ts';
import { respondFault } from './rest/respond.ts';
import { DEFAULT_TIMEOUT } from './rpc/deadline.ts';
import type { RpcHandler } from './rpc/handler.ts';
import { answerUnknownProcedure } from './rpc/unknown-procedure.ts';
import { parseTraceParent } from './traces/trace-parent.ts';
import { assertUniqueHeaders } from './unique-headers.ts';

/** Answers one request. Never throws. */
export type Dispatch = (request: HttpRequest, response: HttpResponse) => void;

/** A dispatcher over the protocols. */
export function createDispatch(options: {
  readonly rest: RestHandler;
  readonly rpc: RpcHandler;
  readonly logger: Logger;
  readonly observers: readonly Observer[];
}): Dispatch {
  const { rest, rpc, logger, observers } = options;
  return (request, response) => {
    const exchange = new Exchange(request, response, DEFAULT_TIMEOUT);
    response.on('close', () => {
      if (!response.writableEnded) {
        exchange.reason ??= 'CANCELED';
        exchange.depart();
      }
      exchange.finish();
      exchange.trace = parseTraceParent(request.headers.traceparent);
      for (const observe of observers) observe(exchange);
      logExchange(logger, exchange);
    });
    // A peer that resets its stream is no fault of ours.
    response.on('error', () => exchange.depart());
    const path = pathOf(request);
    try {
      assertUniqueHeaders(request);
      const { expect } = request.headers;
      if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
        throw new DomainError('EXPECTATION_FAILED', 'only Expect: 100-continue is understood');
      }
    } catch (error) {
      respondFault(exchange, visibleFault(error, exchange), true);
      return;
    }
    if (rpc.serves(path)) void rpc.handle(exchange, path);
    else if (!answerUnknownProcedure(exchange, path)) void rest(exchange, path);
  };
}
