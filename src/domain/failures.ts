/** What a caller sees of the failures of the engine and of the stores. */
import {
  DeadlineTooShort,
  EngineClosing,
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../engine/errors.ts';
import { StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../stores/stores.ts';
import { DomainError } from './errors.ts';

/** The error where there is more work than can be done in time. `retryAfter` in whole seconds. */
export function overloaded(retryAfter: number): DomainError {
  return new DomainError('OVERLOADED', 'the service has more work than it can do in time; try again later', {
    retryAfter,
  });
}

/** Milliseconds as seconds with two significant digits. */
function seconds(milliseconds: number): string {
  return String(Number((Math.max(0, milliseconds) / 1000).toPrecision(2)));
}

/** Does the work. @throws what fails in it, a failure of the engine or of a store as a DomainError. */
export async function orFault<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw faultOf(error);
  }
}

/** Turns an error of the engine or of a store into a DomainError; any other error is returned as it is. */
export function faultOf(error: unknown): unknown {
  if (error instanceof EngineOverloaded) return overloaded(error.retryAfter);
  if (error instanceof ModelUnavailable) {
    return new DomainError('MODEL_UNAVAILABLE', 'the model cannot serve requests now', {
      param: 'model',
      retryAfter: error.retryAfter,
      cause: error,
    });
  }
  if (error instanceof DeadlineTooShort) {
    // No retryAfter: with the same deadline there would be too little time then, too.
    return new DomainError(
      'DEADLINE_EXCEEDED',
      `this takes about ${seconds(error.needed)} s, and the caller's deadline leaves ${seconds(error.left)} s; allow more time`,
    );
  }
  if (error instanceof JobDeadlinePassed) {
    return new DomainError('DEADLINE_EXCEEDED', 'the deadline passed before the decision was made', { retryAfter: 1 });
  }
  if (error instanceof JobCanceled) return new DomainError('CANCELED', 'the caller left before the decision was made');
  if (error instanceof EngineClosing) {
    return new DomainError('DRAINING', 'this process is shutting down', { retryAfter: 1 });
  }
  if (error instanceof JobAbandoned) {
    // No retryAfter: a request that ended one engine process may end the next.
    return new DomainError('OVERLOADED', 'the engine ended while it worked on this request', { cause: error });
  }
  if (error instanceof EngineFailed) {
    return new DomainError('OVERLOADED', 'the decision was interrupted twice; try again', {
      retryAfter: 1,
      cause: error,
    });
  }
  if (error instanceof StoreUnavailable) {
    return new DomainError('STORE_UNAVAILABLE', 'the store of catalogs and keys does not answer now', {
      retryAfter: error.retryAfter,
      cause: error,
    });
  }
  if (error instanceof StoreWriteUnconfirmed) {
    return new DomainError(
      'STORE_WRITE_UNCONFIRMED',
      'the store did not confirm the change: whether it was made, or will last, is unknown; read before trying again',
      { retryAfter: 1, cause: error },
    );
  }
  if (error instanceof StoreCorrupt) {
    return new DomainError(
      'STORAGE_CORRUPT',
      'the stored record is not readable; the operator can find it in the log',
      { cause: error },
    );
  }
  return error;
}
