/** Any error becomes one that a caller may see: what is not a DomainError is `internal`, and only the log says what it was. */
import { DomainError } from '../domain/errors.ts';
import type { Exchange } from './http/exchange.ts';

/** The caller's view of an error that ended the work for an exchange. Notes it there. */
export function visibleFault(error: unknown, exchange: Exchange): DomainError {
  const fault =
    error instanceof DomainError
      ? error
      : new DomainError('INTERNAL', 'an unexpected fault; the log has it under this request id');
  exchange.reason = fault.reason;
  exchange.cause = error instanceof DomainError ? error.cause : error;
  exchange.worked();
  return fault;
}
