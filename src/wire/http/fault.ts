/** The contract's ErrorResponse and the headers that go with it. */
import { type DomainError, ERROR_TABLE, type StatusName } from '../../domain/errors.ts';
import type { Exchange } from './exchange.ts';
import { GZIP } from './gunzip.ts';
import { respond } from './response.ts';

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

/** The JSON text of an ErrorResponse. */
export function envelopeBody(error: DomainError): string {
  const { type } = ERROR_TABLE[error.reason];
  return JSON.stringify({ error: { message: error.message, type, code: error.code, param: error.param } });
}

/** The headers of an error, in addition to those of its body. */
export function errorHeaders(error: DomainError): Record<string, string> {
  const headers: Record<string, string> = {};
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
export function shownStatus({ response, record: { protocol, reason } }: Exchange): number {
  if (!response.headersSent) return 0;
  return protocol === 'grpc' && reason !== undefined ? ERROR_TABLE[reason].http : response.statusCode;
}

/** Sends an error in the contract's envelope. */
export function respondFault(
  exchange: Exchange,
  fault: DomainError,
  closing: boolean,
  headers: Readonly<Record<string, string>> = {},
): void {
  respond(
    exchange,
    { status: httpStatus(fault), headers: { ...errorHeaders(fault), ...headers }, body: envelopeBody(fault) },
    closing,
  );
}
