/** What SQLite's errors mean for a store. */
import { messageOf, StoreCorrupt, StoreUnavailable } from '../errors.ts';

/** The primary result codes of SQLite that are told apart. */
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

/** Whether another process or thread holds the lock, so that another attempt can succeed. */
export function isLocked(error: unknown): boolean {
  const code = primaryCode(error);
  return code === BUSY || code === LOCKED;
}

/** Whether there is no room on the disk. */
export function isFull(error: unknown): boolean {
  return primaryCode(error) === FULL;
}

/**
 * The store's error (errors.ts) for an error of SQLite: StoreCorrupt for a damaged file, StoreUnavailable for all
 * others, such as a full disk. An error that is not SQLite's stays as it is.
 */
export function sqliteFailure(error: unknown): unknown {
  const code = primaryCode(error);
  if (code === undefined) return error;
  const message = messageOf(error);
  if (code === CORRUPT || code === NOT_A_DATABASE) return new StoreCorrupt(message, { cause: error });
  return new StoreUnavailable(message, { cause: error });
}

function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}
