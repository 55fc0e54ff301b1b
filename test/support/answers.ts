/** Answers over REST, however they were fetched, and what all of them must have. */
import type { IncomingHttpHeaders } from 'node:http';
import type { ExecutionContext } from 'ava';

/** One answer, its body read whole. Header names are in lower case. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What an error must be; `param` null where it names none. A pattern is matched against the message. */
export interface ExpectedError {
  readonly status: number;
  readonly code: string;
  readonly param: string | null;
  /** Default: what the contract gives the status. */
  readonly type?: string;
  readonly message?: RegExp;
}

/** The body of a well-formed decision, to be changed by each case. */
export const VALID_BODY = {
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
} as const;

const REQUEST_ID = /^req_[A-Za-z0-9_-]+$/;

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  429: 'rate_limit_error',
  500: 'server_error',
  501: 'server_error',
  503: 'server_error',
};

/** The JSON of an answer's body. */
export function json(answer: Answer): Record<string, unknown> {
  return JSON.parse(answer.text) as Record<string, unknown>;
}

/** Whether the answer is an ErrorResponse of the contract, to the letter; says what is wrong with it. */
export function envelopeFault(answer: Answer): string | undefined {
  const { headers, text, status } = answer;
  if (headers['content-type'] !== 'application/json') return `content type ${headers['content-type']}`;
  if (!REQUEST_ID.test(String(headers['x-request-id']))) return `x-request-id ${headers['x-request-id']}`;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return `no JSON: ${text.slice(0, 200)}`;
  }
  if (Object.keys(body as object).join() !== 'error') return `properties ${Object.keys(body as object).join()}`;
  const error = (body as { error: Record<string, unknown> }).error;
  if (Object.keys(error).sort().join() !== 'code,message,param,type') return `error has ${Object.keys(error).join()}`;
  if (typeof error.message !== 'string' || error.message === '') return 'no message';
  if (typeof error.code !== 'string' || !/^[a-z][a-z_]*$/.test(error.code)) return `code ${error.code}`;
  if (error.param !== null && typeof error.param !== 'string') return `param ${error.param}`;
  if (status === 401 && headers['www-authenticate'] !== 'Bearer') return 'no WWW-Authenticate';
  if (status === 405 && typeof headers.allow !== 'string') return 'no Allow';
  const retryAfter = headers['retry-after'];
  if (retryAfter !== undefined && !/^[1-9]\d*$/.test(retryAfter)) return `retry-after ${retryAfter}`;
  return undefined;
}

/** Asserts that the answer is the error that is expected. */
export function isError(t: ExecutionContext, answer: Answer, expected: ExpectedError, what = ''): void {
  t.is(envelopeFault(answer), undefined, what);
  const { error } = json(answer) as { error: Record<string, unknown> };
  t.deepEqual(
    { status: answer.status, type: error.type, code: error.code, param: error.param },
    {
      status: expected.status,
      type: expected.type ?? TYPES[expected.status] ?? 'invalid_request_error',
      code: expected.code,
      param: expected.param,
    },
    `${what} ${error.message}`,
  );
  if (expected.message !== undefined) t.regex(error.message as string, expected.message, what);
}
