/**
 * A decision over REST, with retries and a deadline; this file needs nothing but Node 22.18 or later (or `npx tsx`):
 *
 *     node_modules/.bin/node docs/clients/rest.ts BASE_URL
 *
 * It is an ES module: in a package of your own, which npm makes a CommonJS one, `npm pkg set type=module` first, or name the copy rest.mts.
 * With API_KEY in the environment the request carries the key.
 */

import { fileURLToPath } from 'node:url';

/** What decides: exactly one of `choices` and `catalog`. */
export interface DecisionRequest {
  readonly model: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices?: readonly string[];
  readonly catalog?: string;
}

/** The answer. `model` names the revision that decided: keep it with the decision. */
export interface Decision {
  readonly id: string;
  readonly object: 'decision';
  readonly model: string;
  readonly output: {
    readonly choice: string;
    readonly confidence: number;
    readonly probabilities: Readonly<Record<string, number>>;
  };
  readonly usage: { readonly input_tokens: number };
}

/** An error of the service's: decide by `status` and `code`; `message` is for logs, as is `requestId`. */
export class UmpireError extends Error {
  override readonly name = 'UmpireError';
  readonly status: number;
  readonly code: string;
  readonly param: string | null;
  readonly requestId: string | null;
  /** Milliseconds that the service asks to wait; undefined if it does not say. */
  readonly retryAfter: number | undefined;
  constructor(response: Response, body: unknown) {
    // A proxy in between answers in words of its own.
    const { message, code, param } =
      (body as { error?: { message?: string; code?: string; param?: string | null } })?.error ?? {};
    super(message ?? `HTTP ${response.status}`);
    this.status = response.status;
    this.code = code ?? 'unknown';
    this.param = param ?? null;
    this.requestId = response.headers.get('x-request-id');
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    this.retryAfter = Number.isInteger(seconds) ? seconds * 1000 : undefined;
  }
}

/** With these, waiting does not help: the day's quota is used up, or the work takes longer than it may. */
const HOPELESS = new Set(['quota_exceeded', 'deadline_exceeded']);

/** Milliseconds to wait before the next attempt; undefined where none makes sense. */
function pause(error: unknown, attempt: number): number | undefined {
  const backoff = Math.random() * Math.min(4000, 100 * 2 ** attempt);
  // Nobody answered. A decision stores nothing, so it may be sent again, whether it arrived or not.
  if (!(error instanceof UmpireError)) return backoff;
  if (error.status !== 429 && error.status !== 503) return undefined;
  if (error.retryAfter !== undefined) return error.retryAfter + Math.random() * 100;
  return HOPELESS.has(error.code) ? undefined : backoff;
}

/** What a text says as JSON; undefined if it is none. */
function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What went wrong in one line. What `fetch` throws says "fetch failed", and why in its cause. */
export function describe(error: unknown): string {
  if (error instanceof UmpireError) return `${error.status} ${error.code} ${error.requestId}: ${error.message}`;
  const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } };
  return [error, cause?.code, cause?.message].filter(Boolean).join(': ');
}

/** Decides within `timeout` milliseconds, all attempts together. @throws UmpireError, or what `fetch` throws. */
export async function decide(
  baseUrl: string,
  request: DecisionRequest,
  {
    key,
    timeout = 10_000,
    attempts = 5,
  }: { readonly key?: string | undefined; readonly timeout?: number; readonly attempts?: number } = {},
): Promise<Decision> {
  const deadline = Date.now() + timeout;
  const signal = AbortSignal.timeout(timeout);
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch(new URL('/v1/decisions', baseUrl), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify(request),
        signal,
      });
      // The body is read whatever it is: then the connection serves the next request, too. One that breaks off throws.
      const body = fromJson(await response.text());
      if (!response.ok || body === undefined) throw new UmpireError(response, body);
      return body as Decision;
    } catch (error) {
      const wait = signal.aborted || attempt === attempts ? undefined : pause(error, attempt);
      if (wait === undefined || Date.now() + wait > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [baseUrl = 'http://localhost:8080'] = process.argv.slice(2);
  try {
    const { output, model } = await decide(
      baseUrl,
      {
        model: 'minilm-l6',
        input: 'I was charged twice for my order',
        instruction: 'Which team should handle this?',
        choices: ['billing', 'shipping', 'technical support'],
      },
      { key: process.env.API_KEY },
    );
    process.stdout.write(`${output.choice} ${output.confidence} ${model}\n`);
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exitCode = 1;
  }
}
