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
import {
  errorFromJsonBytes,
  findTrailerError,
  setTrailerStatus,
  type UniversalServerResponse,
} from './connect-private.ts';
import { answerConnectFault, noCall, toConnectError, unescapeMessage } from './fault.ts';

/**
 * Sends what Connect answered. A fault that Connect found is put right and its reason noted on the exchange. @throws
 * NoCall if Connect found that the request is no call.
 */
export async function answer(exchange: Exchange, answered: UniversalServerResponse, closing: boolean): Promise<void> {
  const { request, response, record } = exchange;
  const { status, body, trailer } = answered;
  if (status >= 400 && (body === undefined || body === null)) {
    // A GET that does not say how its message is encoded, or HTTP/1.1 for a bidirectional stream.
    throw noCall(status);
  }
  if (record.protocol === 'grpc') {
    if (trailer !== undefined) repairTrailer(trailer, exchange);
  } else if (record.reason === undefined && status >= 400) {
    const bytes = await firstChunk(body as AsyncIterable<Uint8Array>);
    const error = errorFromJsonBytes(bytes, undefined, new ConnectError('', Code.Internal));
    answerConnectFault(exchange, reasonOf(error, exchange), closing);
    return;
  }
  response.setHeader('x-request-id', exchange.requestId);
  if (closing && !isHttp2(request)) response.setHeader('connection', 'close');
  // Over HTTP/1.1 this version's promise does not resolve: nothing may wait for it.
  const counted = body === undefined || body === null ? {} : { body: countedBody(exchange, body) };
  universalResponseToNodeResponse({ ...answered, ...counted, status: status === 501 ? 415 : status }, response).catch(
    () => exchange.depart(),
  );
}

/** The body of an answer, whose bytes are counted as they pass. */
async function* countedBody(exchange: Exchange, body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    exchange.answers?.count(chunk.length);
    yield chunk;
  }
}

/** Completes the error of a trailer. A handler's error has been noted; only the escapes in its message are undone. */
function repairTrailer(trailer: Headers, exchange: Exchange): void {
  const error = exchange.record.reason === undefined ? findTrailerError(trailer) : undefined;
  unescapeMessage(error === undefined ? trailer : setTrailerStatus(trailer, toConnectError(reasonOf(error, exchange))));
}

function reasonOf(error: ConnectError, exchange: Exchange): DomainError {
  return exchange.failed(classify(error, exchange.times.invokedAt !== undefined), error);
}

function classify(error: ConnectError, invoked: boolean): DomainError {
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
    case Code.DeadlineExceeded:
      return new DomainError('DEADLINE_EXCEEDED', 'the deadline passed before the request was read', { retryAfter: 1 });
    case Code.Canceled:
    case Code.Aborted:
      return new DomainError('CANCELED', 'the caller left before its request was complete');
  }
  if (invoked) return new DomainError('INTERNAL', 'an unexpected fault; the log has it under this request id');
  const unknown = /key "([^"]{1,128})" is unknown/.exec(message)?.[1];
  if (unknown !== undefined) {
    return new DomainError('UNKNOWN_FIELD', `${unknown} is not a field of this request`, { param: unknown });
  }
  const field = /cannot decode field \S+\.(\w+) from JSON/.exec(message)?.[1];
  if (field !== undefined) return new DomainError('INVALID_TYPE', `${field} has the wrong type`, { param: field });
  return new DomainError(
    'INVALID_MESSAGE',
    'the message cannot be decoded: it is truncated, malformed or not of this type',
  );
}

async function firstChunk(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  for await (const chunk of body) return chunk;
  return new Uint8Array();
}
