/** What the Redis client's errors mean for a store call. */
import { ClientClosedError, ClientOfflineError, ErrorReply } from 'redis';
import { messageOf, StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../stores.ts';

/**
 * What is unknown after a store call was cut off. `write`: whether the write was made, which the caller must be told.
 * `repeatable`: nothing that matters, since the call only reads, or makes a change that may be made twice, such as a
 * count.
 */
export type CallKind = 'repeatable' | 'write';

/** NOSCRIPT: the server does not know the script, and ran nothing. */
export function isMissingScript(error: unknown): boolean {
  return error instanceof ErrorReply && /^NOSCRIPT\b/.test(error.message);
}

/** READONLY: the server is not a master, or no longer one. */
export function isWrongServer(error: unknown): boolean {
  return isReply(error, 'READONLY');
}

/**
 * The store's error (stores/stores.ts) for an error of the client; a store's error stays as it is. An error reply means
 * that nothing was written: WRONGTYPE that the key holds something else, any other (OOM, LOADING, MISCONF, no
 * permission, …) that the server refuses for now. After a lost connection or a missing answer, whether a write was made
 * is unknown.
 */
export function storeError(error: unknown, kind: CallKind): Error {
  if (error instanceof StoreCorrupt || error instanceof StoreUnavailable || error instanceof StoreWriteUnconfirmed) {
    return error;
  }
  if (isReply(error, 'WRONGTYPE'))
    return new StoreCorrupt('a key of Umpire holds another type of data', { cause: error });
  const known =
    error instanceof ErrorReply || error instanceof ClientOfflineError || error instanceof ClientClosedError;
  if (kind === 'write' && !known) return new StoreWriteUnconfirmed('Redis did not confirm the write', { cause: error });
  return new StoreUnavailable(messageOf(error), { cause: error });
}

/** Whether an error reply has the code, which older servers put in the middle of the text if a script's call failed. */
function isReply(error: unknown, code: string): boolean {
  return error instanceof ErrorReply && new RegExp(`\\b${code}\\b`).test(error.message);
}
