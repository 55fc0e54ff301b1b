/** What real servers say to a text that is too long, in their own words. */
import type { Reply } from './faults.ts';

/** How a server treats a text that is too long. */
export type TooLong = (tokens: number, limit: number) => Reply;

const refusal = (status: number, body: unknown): Reply => ({ status, body });
const longest = (limit: number): string => `This model's maximum context length is ${limit} tokens`;
const REDUCE = 'Please reduce the length of the input.';
const ofVllm = (tokens: number, limit: number, use: string) => ({
  message: `${longest(limit)}. However, you requested ${tokens} tokens in the input for ${use}. ${REDUCE}`,
  ...{ type: 'BadRequestError', code: 400 },
});
const ofTei = (tokens: number, limit: number): string =>
  `Input validation error: \`inputs\` must have less than ${limit} tokens. Given: ${tokens}`;

/** By server; those that cut silently are not here. */
export const TOO_LONG = {
  vllm: (tokens, limit) => refusal(400, { error: { ...ofVllm(tokens, limit, 'score'), param: 'input_tokens' } }),
  'older vllm': (tokens, limit) =>
    refusal(400, { object: 'error', ...ofVllm(tokens, limit, 'embedding generation'), param: null }),
  tei: (tokens, limit) => refusal(413, { error: ofTei(tokens, limit), error_type: 'Validation' }),
  'tei, as OpenAI': (tokens, limit) => refusal(413, { message: ofTei(tokens, limit), code: 413, type: 'Validation' }),
  'llama.cpp': (tokens, limit) => {
    const message = `request (${tokens} tokens) exceeds the available context size (${limit} tokens), try increasing it`;
    const counts = { n_prompt_tokens: tokens, n_ctx: limit };
    return refusal(400, { error: { code: 400, message, type: 'exceed_context_size_error', ...counts } });
  },
  'llama.cpp, batch': (tokens, limit) => {
    const message = `input (${tokens} tokens) is too large to process. increase the physical batch size (current batch size: ${limit})`;
    return refusal(500, { error: { code: 500, message, type: 'server_error' } });
  },
  openai: (tokens, limit) => {
    const asked = `however you requested ${tokens} tokens (${tokens} in your prompt; 0 for the completion)`;
    const message = `${longest(limit)}, ${asked}. Please reduce your prompt; or completion length.`;
    return refusal(400, { error: { message, type: 'invalid_request_error', param: null, code: null } });
  },
  'system one': () =>
    refusal(413, { detail: { error_type: 'request_too_large', message: 'The request exceeds the maximum size.' } }),
} satisfies Readonly<Record<string, TooLong>>;
