/** What the status of an answer means: to a request for scores, and to the question whether the server is ready. */
import { type Blame, CallFailed, type TooLong } from '../call-failed.ts';
import { withoutToken } from '../server-options.ts';

/** What came back, whatever its status. */
export interface HttpAnswer {
  readonly status: number;
  /** As the server wrote it. */
  readonly retryAfter: string | undefined;
  readonly body: Buffer;
}

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

// Recognises refusals by which servers say, each in its own words, that they do not read a text whole:
//
//     llama.cpp  400 { "error": { "type": "exceed_context_size_error", "n_prompt_tokens": 1234, "n_ctx": 512 } }
//                500 { "error": { "message": "input (1234 tokens) is too large to process. … (current batch …)" } }
//     vLLM       400 "This model's maximum context length is 512 tokens. However, you requested 1234 tokens …"
//                400 "You passed 1234 input tokens … a maximum input length of 512 tokens"
//     SGLang     400 "The input (1234 tokens) is longer than the model's context length (512 tokens)"
//     TEI        413 "`inputs` must have less than 512 tokens. Given: 1234"
//     TEI        413 "batch size 33 > maximum allowed batch size 32", which is not about a text
//
// A server that says it in other words is not recognised: its refusal is then one like any other, unless its status is
// 413.

/** Statuses that such a refusal may have. */
const STATUSES: ReadonlySet<number> = new Set([400, 413, 422, 500]);
const TOO_LARGE = 413;

/** Patterns of how many tokens the text has. */
const TOKENS: readonly RegExp[] = [
  /"n_prompt_tokens"\s*:\s*(\d{1,9})\b/,
  /Given: (\d{1,9})\b/,
  /\((\d{1,9}) tokens\) (?:is too large|is longer|exceeds)/,
  /\(length (\d{1,9})\) is longer/,
  /(?:requested|resulted in|contains|has|have|passed)(?: at least)? (\d{1,9})(?: input)? tokens/i,
];
/** Patterns of how many tokens the server takes. */
const LIMIT: readonly RegExp[] = [
  /"n_ctx"\s*:\s*(\d{1,9})\b/,
  /must have less than (\d{1,9}) tokens/,
  /current batch size: (\d{1,9})\b/,
  /context (?:size|length) \((\d{1,9}) tokens\)/,
  /maximum (?:context|model|input|sequence) length (?:is|of) (\d{1,9})\b/i,
];
const SAYS_SO: readonly RegExp[] = [
  /exceed_context_size_error|context_length_exceeded|request_too_large/,
  /must have less than \d+ tokens/,
  /input (?:\(\d+ tokens\) )?is too large to process/,
  /tokens\) exceeds/,
  /maximum (?:context|model|input|sequence) length/i,
  /longer than the (?:maximum|model|context)/i,
  /exceeds? the (?:available |maximum )?context/i,
  /\btoo (?:long|many tokens)\b/i,
];
/** Refusals of the number of texts, not of their length. */
const OF_THE_BATCH = /maximum allowed batch size|too many (?:documents|texts|inputs|items|choices)/i;

/** What an answer says of a text's length; undefined if it says something else. */
export function tooLongOf(status: number, text: string): TooLong | undefined {
  if (!STATUSES.has(status) || OF_THE_BATCH.test(text)) return undefined;
  if (status !== TOO_LARGE && !SAYS_SO.some((pattern) => pattern.test(text))) return undefined;
  const [tokens, limit] = [firstNumber(TOKENS, text), firstNumber(LIMIT, text)];
  return { ...(tokens !== undefined && { tokens }), ...(limit !== undefined && { limit }) };
}

function firstNumber(patterns: readonly RegExp[], text: string): number | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(text)?.[1];
    if (found !== undefined) return Number(found);
  }
  return undefined;
}
