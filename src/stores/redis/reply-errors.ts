/** What the client's errors mean. */
import { ClientClosedError, ClientOfflineError, ErrorReply } from 'redis';

/**
 * - `corrupt`: the record is of another type than Umpire writes.
 * - `missing_script`: NOSCRIPT.
 * - `wrong_server`: READONLY, the server is not a master any more.
 * - `refused`: the server answered that it does not do it now (OOM, LOADING, MISCONF, no permission, …): nothing was written.
 * - `not_sent`: there was no connection: nothing was written.
 * - `broken`: the connection was lost underway: whether a write was made is unknown.
 */
export type Trouble = 'corrupt' | 'missing_script' | 'wrong_server' | 'refused' | 'not_sent' | 'broken';

/** Reads an error of a command. */
export function troubleOf(error: unknown): Trouble {
  if (error instanceof ClientOfflineError || error instanceof ClientClosedError) return 'not_sent';
  if (!(error instanceof ErrorReply)) return 'broken';
  // A script's errors carry the code of the call within: `ERR Error running script …: @user_script: 1: WRONGTYPE …` in older servers.
  if (/^NOSCRIPT\b/.test(error.message)) return 'missing_script';
  if (/\bWRONGTYPE\b/.test(error.message)) return 'corrupt';
  if (/\bREADONLY\b/.test(error.message)) return 'wrong_server';
  return 'refused';
}
