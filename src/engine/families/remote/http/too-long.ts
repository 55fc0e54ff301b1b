/**
 * Recognises refusals by which servers say, each in its own words, that they do not read a text whole:
 *
 *     llama.cpp  400 { "error": { "type": "exceed_context_size_error", "n_prompt_tokens": 1234, "n_ctx": 512 } }
 *                500 { "error": { "message": "input (1234 tokens) is too large to process. … (current batch …)" } }
 *     vLLM       400 "This model's maximum context length is 512 tokens. However, you requested 1234 tokens …"
 *                400 "You passed 1234 input tokens … a maximum input length of 512 tokens"
 *     SGLang     400 "The input (1234 tokens) is longer than the model's context length (512 tokens)"
 *     TEI        413 "`inputs` must have less than 512 tokens. Given: 1234"
 *     TEI        413 "batch size 33 > maximum allowed batch size 32", which is not about a text
 *
 * A server that says it in other words is not recognised: its refusal is then one like any other, unless its status is
 * 413.
 */
import type { TooLong } from '../call-failed.ts';

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
