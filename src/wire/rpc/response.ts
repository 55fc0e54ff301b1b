/**
 * The response to a call that Connect has processed. Faults that Connect itself finds before a handler runs (a
 * truncated message, one that is too large, an unknown compression, an unknown JSON field) it reports without ErrorInfo
 * and partly as the server's own (INTERNAL, HTTP 500) or as a rate limit (HTTP 429); here they become reasons of the
 * one table.
 */
import { Code, ConnectError } from '@connectrpc/connect';
import { universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { DomainError } from '../../domain/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { isHttp2 } from '../http/messages.ts';
import { respond } from '../http/response.ts';
import {
  errorFromJsonBytes,
  findTrailerError,
  setTrailerStatus,
  type UniversalServerResponse,
} from './connect-private.ts';
import { noCall, toConnectError, undecodable, unescapeMessage } from './fault.ts';
import type { Route } from './routes.ts';

/**
 * Sends what Connect answered. @throws what the handler of a unary call threw and what Connect found wrong with a
 * request, as a DomainError; HttpFault if it is no call.
 */
export async function answer(
  exchange: Exchange,
  { handler }: Route,
  answered: UniversalServerResponse,
  closing: boolean,
): Promise<void> {
  const { request, response, record } = exchange;
  const { status, header, body, trailer } = answered;
  // A GET that does not say how its message is encoded, or HTTP/1.1 for a bidirectional stream.
  if (body === undefined) throw noCall(status);
  if (handler.method.methodKind === 'unary') {
    if (record.fault !== undefined) throw record.fault;
    const bytes = trailer === undefined ? await firstChunk(body) : undefined;
    const error =
      trailer !== undefined
        ? findTrailerError(trailer)
        : status >= 400
          ? errorFromJsonBytes(bytes as Uint8Array, undefined, new ConnectError('', Code.Internal))
          : undefined;
    if (error !== undefined) throw classify(error, exchange);
    if (bytes !== undefined) {
      respond(exchange, { status, headers: Object.fromEntries(header ?? []), body: bytes }, closing);
      return;
    }
  } else if (trailer !== undefined) repairTrailer(trailer, exchange);
  response.setHeader('x-request-id', exchange.requestId);
  if (closing && !isHttp2(request)) response.setHeader('connection', 'close');
  // Over HTTP/1.1 this version's promise does not resolve: nothing may wait for it.
  universalResponseToNodeResponse({ ...answered, body: countedBody(exchange, body) }, response).catch(() =>
    exchange.depart(),
  );
}

/** The body of an answer, whose bytes are counted as they pass. */
async function* countedBody(exchange: Exchange, body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    exchange.answers?.count(chunk.length);
    yield chunk;
  }
}

/** Completes the error of a stream's trailer. A handler's own has been noted: only its message is unescaped. */
function repairTrailer(trailer: Headers, exchange: Exchange): void {
  const error = exchange.record.fault === undefined ? findTrailerError(trailer) : undefined;
  if (error !== undefined) setTrailerStatus(trailer, toConnectError(exchange.failed(classify(error, exchange))));
  unescapeMessage(trailer);
}

/** The reason of an error that Connect found; the error itself if it is no fault of the request's. */
function classify(error: ConnectError, { times }: Exchange): DomainError | ConnectError {
  const message = error.rawMessage;
  if (/^protocol error: invalid (grpc|connect) timeout/.test(message)) {
    return new DomainError('MALFORMED_REQUEST', 'grpc-timeout or connect-timeout-ms is not valid');
  }
  if (/^protocol error: (missing|received extra) input message/.test(message)) {
    return new DomainError('INVALID_MESSAGE', 'this procedure takes exactly one message');
  }
  switch (error.code) {
    case Code.ResourceExhausted:
      return new DomainError('BODY_TOO_LARGE', 'the message is larger than 1 MiB');
    case Code.Unimplemented:
      return new DomainError('UNSUPPORTED_ENCODING', message);
  }
  if (times.invokedAt !== undefined) return error;
  const unknown = /key "([^"]{1,128})" is unknown/.exec(message)?.[1];
  if (unknown !== undefined) {
    return new DomainError('UNKNOWN_FIELD', `${unknown} is not a field of this request`, { param: unknown });
  }
  const field = /cannot decode field \S+\.(\w+) from JSON/.exec(message)?.[1];
  if (field !== undefined) return new DomainError('INVALID_TYPE', `${field} has the wrong type`, { param: field });
  return undecodable();
}

async function firstChunk(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  for await (const chunk of body) return chunk;
  return new Uint8Array();
}
