/** Asks a running service for decisions and catalogs, over HTTP on connections that are kept open. */

/** The body of a request for one decision, with choices or a catalog. */
export interface Asked {
  readonly model: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices?: readonly string[];
  readonly catalog?: string;
}

/** A decision as the service answered it. */
export interface Answered {
  readonly model: string;
  readonly choice: string;
  readonly confidence: number;
  readonly probabilities: Readonly<Record<string, number>>;
  /** The digest of what the catalog learned, if that took part in the decision. */
  readonly learned: string | undefined;
}

/** The name of what decided: the revision of the model, and what the catalog learned. */
export function nameOf({ model, learned }: Answered): string {
  return learned === undefined ? model : `${model}, learned ${learned}`;
}

/** An error with a code of the contract, or with one of this command's own. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
}

/** The outcome of one attempt. */
export type Attempt =
  | { readonly kind: 'answered'; readonly answer: Answered }
  /** This text cannot be decided. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** The service takes no more now. `retryAfter`: milliseconds, if the service names them. */
  | { readonly kind: 'busy'; readonly refusal: Refusal; readonly retryAfter: number | undefined }
  /** No answer, or one from which nothing follows. `contact`: whether a server was reached. */
  | { readonly kind: 'lost'; readonly refusal: Refusal; readonly contact: boolean }
  /** Every text would be refused in the same way. */
  | { readonly kind: 'hopeless'; readonly message: string };

/** How a text ended: with an answer or with an error. */
export type Outcome = Extract<Attempt, { kind: 'answered' | 'refused' }>;

/** Milliseconds until an attempt is given up: longer than a service may take for one request. */
const ANSWER_MS = 60_000;

/** Error codes that every other text would get as well. */
const ALIKE_FOR_ALL: ReadonlySet<string> = new Set([
  'unknown_model',
  'model_disabled',
  'unknown_catalog',
  'catalog_model_mismatch',
  'choices_or_catalog',
  'invalid_choices',
  'too_many_choices',
  'candidate_tokens_exceeded',
  'quota_exceeded',
  'storage_corrupt',
]);
/** Statuses that every other text would get as well. */
const STATUSES_ALIKE_FOR_ALL: ReadonlySet<number> = new Set([401, 403, 404, 405]);
/** Statuses, beside 503, that proxies answer for a service that is away or slow. */
const AWAY: ReadonlySet<number> = new Set([408, 500, 502, 504]);

/** A client of one service, without trying again. The key leaves it only in a header. */
export class DecidingClient {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  /** `base`: the service's address, with a path if it is below one. */
  constructor({ href }: URL, key: string | undefined) {
    this.#base = href.endsWith('/') ? href : `${href}/`;
    this.#headers = {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    };
  }

  /** Asks for one decision. Rejects only with the reason of `signal`. */
  async attempt(asked: Asked, signal: AbortSignal): Promise<Attempt> {
    try {
      const request = { method: 'POST', body: JSON.stringify(asked) };
      const response = await this.#fetch('v1/decisions', request, signal);
      return outcomeOf(response, await response.text());
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      return lost(error);
    }
  }

  /** A catalog of the owner of the key. @throws Error if the service does not show it. */
  async catalog(id: string): Promise<{ readonly model: string; readonly choices: readonly string[] }> {
    const response = await this.#fetch(`v1/catalogs/${encodeURIComponent(id)}`);
    const body = parsed(await response.text());
    const { model, choices } = (body ?? {}) as { readonly model?: unknown; readonly choices?: unknown };
    if (response.status === 200 && typeof model === 'string' && Array.isArray(choices)) return { model, choices };
    const { code, message } = refusalOf(body) ?? { code: `http_${response.status}`, message: NOT_UMPIRE };
    throw new Error(`${code}: ${message}`);
  }

  #fetch(path: string, request: RequestInit = {}, signal?: AbortSignal): Promise<Response> {
    const ends = [AbortSignal.timeout(ANSWER_MS), ...(signal === undefined ? [] : [signal])];
    // The key must not be sent to wherever a redirect points.
    const own = { headers: this.#headers, redirect: 'manual', signal: AbortSignal.any(ends) } as const;
    return fetch(new URL(path, this.#base), { ...request, ...own });
  }
}

const NOT_UMPIRE = 'what answers there is not Umpire';

/** Codes of errors after which no server was reached, and the words for ports that `fetch` never asks, such as 6000. */
const NOBODY = new Set<unknown>(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'bad port']);

function lost(error: unknown): Attempt {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code, message } = cause as { code?: unknown; message?: unknown };
  const contact = !NOBODY.has(code ?? message);
  // The error has an empty message where several addresses of one name were tried.
  const words = String(message || code || error);
  return { kind: 'lost', contact, refusal: { code: 'no_answer', message: words, param: null } };
}

function outcomeOf({ status, headers }: Response, body: string): Attempt {
  const value = parsed(body);
  if (status === 200) {
    const answer = answerOf(value, headers.get('x-umpire-learned') ?? undefined);
    if (answer !== undefined) return { kind: 'answered', answer };
    return { kind: 'hopeless', message: `${NOT_UMPIRE}: its answer is not a decision` };
  }
  const refusal = refusalOf(value) ?? { code: `http_${status}`, message: `answered ${status}`, param: null };
  const { code, message } = refusal;
  const forAll = ALIKE_FOR_ALL.has(code) || STATUSES_ALIKE_FOR_ALL.has(status) || (status >= 300 && status < 400);
  if (forAll) return { kind: 'hopeless', message: `${code}: ${message}` };
  if (status === 429 || status === 503)
    return { kind: 'busy', refusal, retryAfter: secondsOf(headers.get('retry-after')) };
  if (AWAY.has(status)) return { kind: 'lost', refusal, contact: true };
  return { kind: 'refused', refusal };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function answerOf(value: unknown, learned: string | undefined): Answered | undefined {
  const { model, output } = (value ?? {}) as { model?: unknown; output?: Partial<Answered> };
  const { choice, confidence, probabilities } = output ?? {};
  const whole =
    typeof model === 'string' &&
    typeof choice === 'string' &&
    typeof confidence === 'number' &&
    typeof probabilities === 'object' &&
    probabilities !== null;
  return whole ? { model, choice, confidence, probabilities, learned } : undefined;
}

function refusalOf(value: unknown): Refusal | undefined {
  const { error } = (value ?? {}) as { error?: Partial<Refusal> };
  if (typeof error?.code !== 'string' || typeof error.message !== 'string') return undefined;
  return { code: error.code, message: error.message, param: typeof error.param === 'string' ? error.param : null };
}

/** The milliseconds of a `Retry-After` in seconds; undefined for a date, which Umpire never sends. */
function secondsOf(value: string | null): number | undefined {
  return value !== null && /^\d{1,9}$/.test(value) ? 1000 * Number(value) : undefined;
}
