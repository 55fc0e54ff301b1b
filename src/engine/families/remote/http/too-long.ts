/**
 * Refusals by which servers say that they do not read a text whole, in their own words:
 *
 *     llama.cpp  400 { "error": { "type": "exceed_context_size_error", "n_prompt_tokens": 1234, "n_ctx": 512 } }
 *                500 { "error": { "message": "input (1234 tokens) is too large to process. … (current batch size: 512)" } }
 *     vLLM       400 { "error": { "message": "This model's maximum context length is 512 tokens. However, you requested 1234 tokens …" } }
 *     TEI        413 { "error": "Input validation error: `inputs` must have less than 512 tokens. Given: 1234" }
 *
 * A server that says it in other words is not recognised: its refusal is then one like any other.
 */
import type { TooLong } from '../call-failed.ts';

/** Statuses that such a refusal may have. */
const STATUSES: ReadonlySet<number> = new Set([400, 413, 422, 500]);

/** Patterns that have both counts or one of them. */
const TOKENS: readonly RegExp[] = [
  /"n_prompt_tokens"\s*:\s*(\d{1,9})/,
  /Given: (\d{1,9})/,
  /\((\d{1,9}) tokens\) (?:is too large|exceeds)/,
  /(?:requested|resulted in|contains|contain|has|have|passed|got)(?: at least)? (\d{1,9})(?: input)? tokens/i,
];
const LIMIT: readonly RegExp[] = [
  /"n_ctx"\s*:\s*(\d{1,9})/,
  /must have less than (\d{1,9}) tokens/,
  /current batch size: (\d{1,9})/,
  /context size \((\d{1,9}) tokens\)/,
  /maximum (?:context|model|input|sequence) length (?:is|of) (\d{1,9})/i,
];
const SAYS_SO =
  /exceed_context_size_error|context_length_exceeded|must have less than \d+ tokens|tokens\) (?:is too large|exceeds)|input is too large to process|(?:maximum|max) (?:context|model|input|sequence) length|(?:longer|more|larger) than the (?:maximum|model|context)|too (?:long|many tokens)|exceeds? the (?:available |maximum )?(?:context|model|number of tokens)/i;

/** What an answer says of a text's length; undefined if it says something else. */
export function tooLongOf(status: number, text: string): TooLong | undefined {
  if (!STATUSES.has(status) || !SAYS_SO.test(text)) return undefined;
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
