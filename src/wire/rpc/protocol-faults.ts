/**
 * Faults that Connect finds itself, before a handler runs: a truncated message, one that is too large, an unknown compression, an unknown
 * JSON field. It answers some as the server's fault (INTERNAL, HTTP 500) or as a rate limit (HTTP 429), and none with ErrorInfo; here they
 * become reasons of the one table.
 */
import { Code, ConnectError } from '@connectrpc/connect';
import { DomainError, ERROR_TABLE } from '../../domain/errors.ts';
import type { Exchange } from '../exchange.ts';
import { toConnectError } from './connect-error.ts';
import {
  errorFromJsonBytes,
  errorToJsonBytes,
  findTrailerError,
  setTrailerStatus,
  type UniversalServerResponse,
} from './connect-private.ts';

/** The response with such a fault put right; any other response as it is. Notes the reason on the exchange. */
export async function repairFault(
  response: UniversalServerResponse,
  exchange: Exchange,
): Promise<UniversalServerResponse> {
  if (exchange.protocol === 'grpc' && response.trailer !== undefined) unescapeMessage(response.trailer);
  // Errors of the gate and of handlers have been noted and are complete.
  if (exchange.reason !== undefined) return response.status === 501 ? { ...response, status: 415 } : response;
  if (exchange.protocol === 'grpc') {
    const error = response.trailer === undefined ? undefined : findTrailerError(response.trailer);
    if (error !== undefined && response.trailer !== undefined)
      unescapeMessage(setTrailerStatus(response.trailer, toConnectError(reasonOf(error, exchange))));
    return response;
  }
  if (response.status < 400 || response.body === undefined || response.body === null) return response;
  const bytes = await firstChunk(response.body as AsyncIterable<Uint8Array>);
  const fault = reasonOf(errorFromJsonBytes(bytes, undefined, new ConnectError('', Code.Internal)), exchange);
  const error = toConnectError(fault);
  const body = errorToJsonBytes(error, undefined);
  const header = new Headers(response.header);
  for (const [name, value] of error.metadata) header.set(name, value);
  header.set('content-length', String(body.byteLength));
  header.delete('content-encoding');
  return { ...response, status: connectStatus(fault), header, body: once(body) };
}

/**
 * Takes back escapes in `grpc-message` that gRPC does not ask for: it wants only `%` and what is not printable ASCII escaped, Connect escapes
 * all punctuation, and grpc-js then shows its callers `%3B` for a semicolon.
 */
export function unescapeMessage(trailer: Headers): Headers {
  const message = trailer.get('grpc-message');
  if (message?.includes('%') === true) {
    trailer.set(
      'grpc-message',
      message.replace(/%(?!25)(?:[2-6][0-9A-F]|7[0-9A-E])/g, (escaped) => decodeURIComponent(escaped)),
    );
  }
  return trailer;
}

/** What Connect's clients are told by the status alone is the 4xx family; the code is in the body. */
function connectStatus(fault: DomainError): number {
  const { http } = ERROR_TABLE[fault.reason];
  return http === 503 && fault.reason === 'DEADLINE_EXCEEDED' ? 504 : http;
}

function reasonOf(error: ConnectError, exchange: Exchange): DomainError {
  const fault = classify(error, exchange.invokedAt !== undefined);
  exchange.reason = fault.reason;
  exchange.cause = error;
  exchange.worked();
  return fault;
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

async function* once(chunk: Uint8Array): AsyncIterable<Uint8Array> {
  yield chunk;
}
