/** Turns the stores' failures into what a caller sees. */
import { StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../stores/stores.ts';
import { DomainError } from './errors.ts';

/** Turns an error of a store into a DomainError; any other error is returned as it is. */
export function storeFailure(error: unknown): unknown {
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

/** Awaits store work. @throws its failures, those of the store as DomainErrors. */
export async function throughStore<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw storeFailure(error);
  }
}
