/** The contract's ErrorResponse and the headers that go with it. */
import { type DomainError, ERROR_TABLE } from '../../domain/errors.ts';

/** The JSON text of an ErrorResponse. */
export function envelopeBody(error: DomainError): string {
  const { type } = ERROR_TABLE[error.reason];
  return JSON.stringify({ error: { message: error.message, type, code: error.code, param: error.param } });
}

/** The headers that an error brings beside the body's own. */
export function errorHeaders(error: DomainError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.retryAfter !== undefined) headers['retry-after'] = String(error.retryAfter);
  if (error.reason === 'AUTHENTICATION_REQUIRED') headers['www-authenticate'] = 'Bearer';
  return headers;
}

/** The HTTP status of an error. */
export function httpStatus(error: DomainError): number {
  return ERROR_TABLE[error.reason].http;
}
