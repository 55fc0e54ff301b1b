/** What the client's errors mean for a call. */
import { ClientClosedError, ClientOfflineError, ErrorReply } from 'redis';
import { messageOf, StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../errors.ts';

/**
 * What a call leaves open when it is cut off. `write`: whether it was made, which its caller must be told.
 * `repeatable`: nothing that matters; it reads, or makes a change that may be made twice, such as a count.
 */
export type CallKind = 'repeatable' | 'write';

/** NOSCRIPT: the server does not know the script, and ran nothing. */
export function isMissingScript(error: unknown): boolean {
  return error instanceof ErrorReply && /^NOSCRIPT\b/.test(error.message);
}

/** READONLY: the server is not a master, or not any more. */
export function isWrongServer(error: unknown): boolean {
  return isReply(error, 'READONLY');
}

/**
 * The sentinel for an error of a call; a sentinel stays as it is. A reply says that nothing was written: WRONGTYPE that
 * there is something else at the key, others (OOM, LOADING, MISCONF, no permission, …) that the server does not do it
 * now. A connection that was lost underway, or an answer that did not come, leaves it open whether a write was made.
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

/** A script's error carries the code of the call within it, in older servers in the middle of its text. */
function isReply(error: unknown, code: string): boolean {
  return error instanceof ErrorReply && new RegExp(`\\b${code}\\b`).test(error.message);
}
