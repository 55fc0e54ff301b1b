/**
 * A DomainError as gRPC and Connect carry it: a status code, `google.rpc.ErrorInfo` and, where a retry helps,
 * `RetryInfo` and pushback. Calls that fail before Connect reads them are answered here as well.
 */
import { ConnectError } from '@connectrpc/connect';
import { LRUCache } from 'lru-cache';
import { ErrorInfoSchema, RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { DomainError, ERROR_TABLE } from '../../domain/errors.ts';
import { throwRestAway } from '../http/body.ts';
import type { Exchange } from '../http/exchange.ts';
import { HttpFault, respond, STATUS_NUMBERS } from '../http/response.ts';
import { errorToJsonBytes, setTrailerStatus } from './connect-private.ts';

/** `ErrorInfo.domain`: who defines the reasons. */
const ERROR_DOMAIN = 'umpire';

/** The metadata by which a gRPC server tells a client's retry policy when to try again, milliseconds; -1 for never. */
const PUSHBACK = 'grpc-retry-pushback-ms';

/** The fault of a message that cannot be taken apart. */
export const undecodable = (): DomainError =>
  new DomainError('INVALID_MESSAGE', 'the message cannot be decoded: it is truncated, malformed or not of this type');

/** Converts an error. The result carries everything that is sent of it, in either protocol. */
export function toConnectError(error: DomainError): ConnectError {
  const { status } = ERROR_TABLE[error.reason];
  const metadata = new Headers();
  const details: ConstructorParameters<typeof ConnectError>[3] = [
    {
      desc: ErrorInfoSchema,
      value: {
        reason: error.reason,
        domain: ERROR_DOMAIN,
        metadata: error.param === null ? {} : Object.fromEntries([['param', error.param]]),
      },
    },
  ];
  if (error.retryAfter !== undefined) {
    details.push({ desc: RetryInfoSchema, value: { retryDelay: { seconds: BigInt(error.retryAfter), nanos: 0 } } });
    metadata.set(PUSHBACK, String(error.retryAfter * 1000));
    metadata.set('retry-after', String(error.retryAfter));
  } else if (status === 'RESOURCE_EXHAUSTED') {
    metadata.set(PUSHBACK, '-1');
  }
  if (status === 'UNAUTHENTICATED') metadata.set('www-authenticate', 'Bearer');
  return new ConnectError(error.message, STATUS_NUMBERS[status], metadata, details);
}

type StatusFields = readonly (readonly [name: string, value: string])[];

/** The status fields of earlier faults, by what they say: in a flood, making them would cost more than sending them. */
const KNOWN = new LRUCache<string, StatusFields>({ max: 64 });

/**
 * Answers a gRPC call with the fault, in trailers alone and one frame; the rest of its request is discarded. The answer
 * waits until the frames that arrived with the call's first are read: on a stream that is over they would be errors of
 * the session, and a session with many of these is ended.
 */
export function answerGrpcFault({ request, response, requestId }: Exchange, fault: DomainError): void {
  throwRestAway(request);
  // Made here: what throws in the callback is outside every handler, and would end the process.
  const status = statusOf(fault);
  setImmediate(() => {
    // Not `writeHead`: it would send the headers at once, and the end of the stream in a frame of its own.
    for (const [name, value] of status) response.setHeader(name, value);
    response.setHeader('x-request-id', requestId);
    response.end();
  });
}

function statusOf(fault: DomainError): StatusFields {
  const name = `${fault.reason} ${fault.retryAfter} ${fault.param} ${fault.message}`;
  const found = KNOWN.get(name);
  if (found !== undefined) return found;
  const headers = new Headers({ 'content-type': 'application/grpc' });
  const status = [...unescapeMessage(setTrailerStatus(headers, toConnectError(fault)))];
  KNOWN.set(name, status);
  return status;
}

/**
 * Undoes escapes in `grpc-message` that gRPC does not ask for: it wants only `%` and what is not printable ASCII to be
 * escaped, but Connect escapes all punctuation, and grpc-js then shows its callers `%3B` for a semicolon.
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

/** Answers a Connect call with the fault; the rest of its request is discarded. */
export function answerConnectFault(exchange: Exchange, fault: DomainError, closing: boolean): void {
  throwRestAway(exchange.request);
  const error = toConnectError(fault);
  const headers = Object.fromEntries(error.metadata);
  respond(
    exchange,
    { status: connectStatus(fault), headers, body: Buffer.from(errorToJsonBytes(error, undefined)) },
    closing,
  );
}

/** The HTTP status of a fault over Connect, which has REST's but for two. Clients read the code in the body. */
function connectStatus({ reason }: DomainError): number {
  if (reason === 'UNIMPLEMENTED') return 404;
  return reason === 'DEADLINE_EXCEEDED' ? 504 : ERROR_TABLE[reason].http;
}

/**
 * The fault for Connect's statuses 405, 415 and 505: a request for an RPC that is wrong as HTTP, which no RPC protocol
 * can express. `methods`: those with which the RPC can be called.
 */
export function noCall(status: number, methods: readonly string[] = []): HttpFault {
  switch (status) {
    case 405:
      return new HttpFault('METHOD_NOT_ALLOWED', 'RPCs are called with POST', {
        allow: [...new Set(methods)].join(', '),
      });
    case 415:
      return new HttpFault(
        'UNSUPPORTED_MEDIA_TYPE',
        'send application/json or application/proto (Connect) or application/grpc',
      );
    default:
      // A caller that expects a bidirectional stream would wait on the connection.
      return new HttpFault('MALFORMED_REQUEST', 'this RPC needs HTTP/2', { connection: 'close' });
  }
}
