/** What real servers say to a text that is too long, in their own words. */
import type { Reply } from './faults.ts';

/** How a server treats a text that is too long. */
export type TooLong = (tokens: number, limit: number) => Reply;

const refusal = (status: number, body: unknown): Reply => ({ status, body });

/** By server; those that cut silently are not here. */
export const TOO_LONG = {
  vllm: (tokens, limit) =>
    refusal(400, {
      error: {
        message:
          `This model's maximum context length is ${limit} tokens. However, you requested ${tokens} tokens in the ` +
          'input for score. Please reduce the length of the input.',
        type: 'BadRequestError',
        param: 'input_tokens',
        code: 400,
      },
    }),
  'older vllm': (tokens, limit) =>
    refusal(400, {
      object: 'error',
      message:
        `This model's maximum context length is ${limit} tokens. However, you requested ${tokens} tokens in the ` +
        'input for embedding generation. Please reduce the length of the input.',
      type: 'BadRequestError',
      param: null,
      code: 400,
    }),
  tei: (tokens, limit) =>
    refusal(413, {
      error: `Input validation error: \`inputs\` must have less than ${limit} tokens. Given: ${tokens}`,
      error_type: 'Validation',
    }),
  'tei, as OpenAI': (tokens, limit) =>
    refusal(413, {
      message: `Input validation error: \`inputs\` must have less than ${limit} tokens. Given: ${tokens}`,
      code: 413,
      type: 'Validation',
    }),
  'llama.cpp': (tokens, limit) =>
    refusal(400, {
      error: {
        code: 400,
        message: `request (${tokens} tokens) exceeds the available context size (${limit} tokens), try increasing it`,
        type: 'exceed_context_size_error',
        n_prompt_tokens: tokens,
        n_ctx: limit,
      },
    }),
  'llama.cpp, batch': (tokens, limit) =>
    refusal(500, {
      error: {
        code: 500,
        message: `input (${tokens} tokens) is too large to process. increase the physical batch size (current batch size: ${limit})`,
        type: 'server_error',
      },
    }),
  openai: (tokens, limit) =>
    refusal(400, {
      error: {
        message:
          `This model's maximum context length is ${limit} tokens, however you requested ${tokens} tokens ` +
          `(${tokens} in your prompt; 0 for the completion). Please reduce your prompt; or completion length.`,
        type: 'invalid_request_error',
        param: null,
        code: null,
      },
    }),
  'system one': () =>
    refusal(413, { detail: { error_type: 'request_too_large', message: 'The request exceeds the maximum size.' } }),
} satisfies Readonly<Record<string, TooLong>>;
