/**
 * Writes responses that are complete, status, headers and body at once, and among them the contract's ErrorResponse
 * with the headers that go with it.
 */
import type { CallFacts } from '../../domain/call.ts';
import { DomainError, ERROR_TABLE, type ErrorReason, type StatusName } from '../../domain/errors.ts';
import { GZIP, hasLargeRest, throwRestAway } from './body.ts';
import type { Exchange } from './exchange.ts';
import { isHttp2 } from './messages.ts';

/** A response; `body` null for none, and of JSON unless its headers say otherwise. */
export interface WholeResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** The headers that say, in every protocol, what stood behind an answer: they are no part of its message. */
export function factHeaders({ learned, languages, step, unread }: CallFacts): Record<string, string> {
  return {
    ...(learned === undefined ? {} : { 'x-umpire-learned': learned }),
    ...(languages === undefined ? {} : { 'x-umpire-languages': languages.join(', ') }),
    ...(step === undefined
      ? {}
      : { 'x-umpire-step': [step.model, ...step.away.map((name) => `away=${name}`)].join('; ') }),
    // Only what made the answer less sure: nearly every text has some token that its model does not know.
    ...(unread?.over === true ? { 'x-umpire-unread': unread.share.toFixed(2) } : {}),
  };
}

/** Sends a response, with the headers that every response has. Does nothing if the caller is gone. */
export function respond(exchange: Exchange, { status, headers, body }: WholeResponse, closing: boolean): void {
  const { request, response } = exchange;
  if (response.writableEnded || response.destroyed || response.headersSent) return;
  // Over HTTP/2, flow control keeps what nobody reads with the sender.
  if (!isHttp2(request) && !request.complete) throwRestAway(request);
  const head: Record<string, string | number> = { 'x-request-id': exchange.requestId };
  if (body !== null) head['content-type'] = 'application/json';
  Object.assign(head, headers);
  if (!isHttp2(request) && (closing || hasLargeRest(request))) head.connection = 'close';
  if (body === null) {
    response.writeHead(status, head);
    response.end();
    return;
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  head['content-length'] = length;
  exchange.answers?.count(length);
  response.writeHead(status, head);
  if (request.method === 'HEAD') response.end();
  else response.end(body);
}

/** The numbers of gRPC's statuses, which are also those of Connect's codes. */
export const STATUS_NUMBERS: Readonly<Record<StatusName, number>> = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
};

/** A fault of a request as HTTP, whose answer has headers that say what would be right. */
export class HttpFault extends DomainError {
  readonly headers: Readonly<Record<string, string>>;

  constructor(reason: ErrorReason, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(reason, message);
    this.headers = headers;
  }
}

/** The JSON text of an ErrorResponse. */
export function envelopeBody(error: DomainError): string {
  const { type } = ERROR_TABLE[error.reason];
  return JSON.stringify({ error: { message: error.message, type, code: error.code, param: error.param } });
}

/** The headers of an error, in addition to those of its body. */
export function errorHeaders(error: DomainError): Record<string, string> {
  const headers = error instanceof HttpFault ? { ...error.headers } : ({} as Record<string, string>);
  if (error.retryAfter !== undefined) headers['retry-after'] = String(error.retryAfter);
  if (error.reason === 'AUTHENTICATION_REQUIRED') headers['www-authenticate'] = 'Bearer';
  // RFC 9110, 12.5.3: the codings that a body may have.
  if (error.reason === 'UNSUPPORTED_ENCODING') headers['accept-encoding'] = GZIP;
  return headers;
}

/** The HTTP status of an error. */
export function httpStatus(error: DomainError): number {
  return ERROR_TABLE[error.reason].http;
}

/**
 * The HTTP status to log and to count; for a failure over gRPC, where every status is 200, the one that REST has for
 * it; 0 where the caller left before there was one.
 */
export function shownStatus({ response, record: { protocol, fault } }: Exchange): number {
  if (!response.headersSent) return 0;
  return protocol === 'grpc' && fault !== undefined ? httpStatus(fault) : response.statusCode;
}

/** Sends an error in the contract's envelope. */
export function respondFault(exchange: Exchange, fault: DomainError, closing: boolean): void {
  respond(exchange, { status: httpStatus(fault), headers: errorHeaders(fault), body: envelopeBody(fault) }, closing);
}
