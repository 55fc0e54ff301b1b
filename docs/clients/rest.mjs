/**
 * A decision over REST, with retries and a deadline; this file needs nothing but Node 20 or later, or Deno or Bun, in a package of any kind:
 *
 *     node docs/clients/rest.mjs BASE_URL
 *
 * TypeScript reads its types from the comments (`allowJs`). With UMPIRE_KEY in the environment the request carries the key.
 */

import { fileURLToPath } from 'node:url';

/**
 * What decides: exactly one of `choices` and `catalog`.
 *
 * @typedef {{ model: string, input: string, instruction: string, choices?: readonly string[], catalog?: string }} DecisionRequest
 */

/**
 * The answer. `model` names the revision that decided: keep it with the decision.
 *
 * @typedef {object} Decision
 * @property {string} id
 * @property {'decision'} object
 * @property {string} model
 * @property {{ choice: string, confidence: number, probabilities: Record<string, number> }} output
 * @property {{ input_tokens: number }} usage
 */

/** An error of the service's: decide by `status` and `code`; `message` is for logs, as is `requestId`. */
export class UmpireError extends Error {
  name = 'UmpireError';

  /**
   * @param {Response} response
   * @param {unknown} body
   */
  constructor(response, body) {
    // A proxy in between answers in words of its own.
    const { message, code, param } =
      /** @type {{ error?: { message?: string, code?: string, param?: string | null } } | undefined} */ (body)?.error ??
      {};
    super(message ?? `HTTP ${response.status}`);
    this.status = response.status;
    this.code = code ?? 'unknown';
    this.param = param ?? null;
    this.requestId = response.headers.get('x-request-id');
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    /** Milliseconds that the service asks to wait; undefined if it does not say. */
    this.retryAfter = Number.isInteger(seconds) ? seconds * 1000 : undefined;
  }
}

/** With these, waiting does not help: the day's quota is used up, or the work takes longer than it may. */
const HOPELESS = new Set(['quota_exceeded', 'deadline_exceeded']);

/**
 * Milliseconds to wait before the next attempt; undefined where none makes sense.
 *
 * @param {unknown} error
 * @param {number} attempt
 * @returns {number | undefined}
 */
function pause(error, attempt) {
  const backoff = Math.random() * Math.min(4000, 100 * 2 ** attempt);
  // Nobody answered. A decision stores nothing, so it may be sent again, whether it arrived or not.
  if (!(error instanceof UmpireError)) return backoff;
  if (error.status !== 429 && error.status !== 503) return undefined;
  if (error.retryAfter !== undefined) return error.retryAfter + Math.random() * 100;
  return HOPELESS.has(error.code) ? undefined : backoff;
}

/**
 * What a text says as JSON; undefined if it is none.
 *
 * @param {string} text
 * @returns {unknown}
 */
function fromJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * What went wrong in one line. What `fetch` throws says "fetch failed", and why in its cause.
 *
 * @param {unknown} error
 */
export function describe(error) {
  if (error instanceof UmpireError) return `${error.status} ${error.code} ${error.requestId}: ${error.message}`;
  const { cause } = /** @type {{ cause?: { code?: string, message?: string } }} */ (error);
  return [error, cause?.code, cause?.message].filter(Boolean).join(': ');
}

/**
 * Decides within `timeout` milliseconds, all attempts together. Throws UmpireError, or what `fetch` throws.
 *
 * @param {string} baseUrl
 * @param {DecisionRequest} request
 * @param {{ key?: string | undefined, timeout?: number, attempts?: number }} options
 * @returns {Promise<Decision>}
 */
export async function decide(baseUrl, request, { key, timeout = 10_000, attempts = 5 } = {}) {
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
      return /** @type {Decision} */ (body);
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
        model: 'umpire-mini',
        input: 'I was charged twice for my order',
        instruction: 'Which team should handle this?',
        choices: [
          'billing: invoices, charges, refunds',
          'shipping: parcels and delivery',
          'technical support: errors and crashes',
        ],
      },
      { key: process.env.UMPIRE_KEY },
    );
    process.stdout.write(`${output.choice} ${output.confidence} ${model}\n`);
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exitCode = 1;
  }
}
