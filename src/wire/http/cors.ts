/**
 * What pages of other origins may do from a browser (CORS, the Fetch standard): what needs no key, for the origins that
 * the operator names. No credentials are allowed, and `Authorization` is not among the headers that a page may send: a
 * key does not belong in a browser.
 */
import type { Parsed } from '../../domain/settings.ts';
import type { Exchange } from './exchange.ts';
import { respond } from './response.ts';

/** Reads a list of origins, separated by commas or spaces. */
export function parseOrigins(text: string): Parsed<readonly string[]> {
  const origins = text.split(/[\s,]+/).filter((part) => part !== '');
  const wrong = origins.find((each) => !/^https?:/.test(each) || !URL.canParse(each) || new URL(each).origin !== each);
  return wrong === undefined
    ? { value: origins }
    : { problem: `'${wrong}' is not an origin such as 'https://app.example', without a path` };
}

/** A preflight's answer; browsers keep it for as many seconds as they like, two hours at most. */
const PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': 'Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, Traceparent',
  'access-control-max-age': '7200',
};
const EXPOSED = 'X-Request-ID, Retry-After, X-Umpire-Languages, X-Umpire-Step, X-Umpire-Unread';

/** CORS for the operator's origins. */
export class Cors {
  readonly #origins: readonly string[];

  constructor(origins: readonly string[]) {
    this.#origins = origins;
  }

  /**
   * Sets the headers that the browser of a request's page asks for. Returns whether the request is a preflight of a
   * page that may go on, for `answerPreflight`.
   */
  mark({ request, response }: Exchange): boolean {
    // A cache must not give one page what was said to another.
    response.setHeader('vary', 'Origin');
    const { origin, 'access-control-request-method': asked } = request.headers;
    if (origin === undefined || !this.#origins.includes(origin)) return false;
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-expose-headers', EXPOSED);
    return request.method === 'OPTIONS' && asked !== undefined;
  }
}

/** Answers a preflight. @throws DomainError if its address sends too many. */
export function answerPreflight(exchange: Exchange): void {
  exchange.received({ route: 'preflight' });
  exchange.place?.meter();
  respond(exchange, { status: 204, headers: PREFLIGHT, body: null }, false);
}
