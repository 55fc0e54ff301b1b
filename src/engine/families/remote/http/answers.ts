/** What the status of an answer means: to a request for scores, and to the question whether the server is ready. */
import { type Blame, CallFailed } from '../call-failed.ts';
import { withoutToken } from '../token.ts';
import type { HttpAnswer } from './http-client.ts';
import { tooLongOf } from './too-long.ts';

/** The server, or a proxy before it, cannot take the request now. */
const NOT_NOW: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);
const UNAUTHENTICATED = 401;
/** The token does not permit this. A proxy before the server may also say it of a text that it finds suspicious. */
const FORBIDDEN = 403;
/**
 * No such path, or too many requests: such an answer does not say whether the server is ready, but shows that it is
 * there, which has to suffice.
 */
const IS_THERE: ReadonlySet<number> = new Set([404, 405, 429]);
/** There is nothing at the path, or no such model: no request will be answered. */
const NOWHERE: ReadonlySet<number> = new Set([404, 405, 410]);
/** How text-embeddings-inference says that its own back end failed at a request. */
const FAILED_DEPENDENCY = 424;
const NO_TOKEN = 'the token was refused, or there is none';
/** The most bytes that are read of an answer that reports a failure. */
const LONGEST_TEXT = 4096;

/** The failure that an answer other than 200 stands for. `token` is taken out of its text. */
export function failureOf({ status, retryAfter, body }: HttpAnswer, path: string, token?: string): CallFailed {
  const details = withoutToken(body.toString('utf8', 0, LONGEST_TEXT), token);
  const refused = (message: string, blame: Blame): CallFailed => new CallFailed('refused', message, { details, blame });
  const said = `POST ${path} was answered with ${status}`;
  if (NOT_NOW.has(status)) {
    return new CallFailed('unavailable', said, { details, retryAfter: millisecondsOf(retryAfter) });
  }
  if (status === UNAUTHENTICATED) return refused(`${said}: ${NO_TOKEN}`, 'unfit');
  // Not `unfit`: a text of one caller must not make the model unavailable to all others.
  if (status === FORBIDDEN) return refused(`${said}: ${NO_TOKEN}`, 'server');
  if (status < 200 || (status >= 300 && status < 400)) return refused(`${said}: redirects are not followed`, 'unfit');
  if (NOWHERE.has(status))
    return refused(`${said}: there is no such path, or no such model; see server.path and model`, 'unfit');
  const tooLong = tooLongOf(status, details);
  if (tooLong !== undefined) {
    const counts = [tooLong.tokens, tooLong.limit].map((count) => count ?? '?');
    return new CallFailed('refused', `${said}: the text is too long, ${counts[0]} tokens of ${counts[1]}`, {
      ...{ details, blame: 'request' as const, tooLong },
    });
  }
  return refused(said, status >= 400 && status < 500 && status !== FAILED_DEPENDENCY ? 'request' : 'server');
}

/** Why the server is not ready according to its answer; undefined if it is. */
export function readinessOf({ status }: HttpAnswer): string | undefined {
  if ((status >= 200 && status < 300) || IS_THERE.has(status)) return undefined;
  if (status === UNAUTHENTICATED || status === FORBIDDEN) return `answers with ${status}: ${NO_TOKEN}`;
  return `is not ready: it answers with ${status}`;
}

/** A Retry-After in seconds or as a date; undefined if it is neither. */
function millisecondsOf(retryAfter: string | undefined): number | undefined {
  if (retryAfter === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(retryAfter)) return Number(retryAfter) * 1000;
  const date = Date.parse(retryAfter);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
