/**
 * A port with bounds: on connections and requests, by address and in all, on the time that a request takes to arrive
 * and to be answered, and on its body. Every request is logged and answered with an id; what is not read of it is
 * discarded.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from '../logger.ts';
import type { Metrics } from './metrics.ts';
import { Places } from './places.ts';
import { Refused } from './refused.ts';
import type { Terms, Umpire } from './umpire.ts';

/** One request as handlers see it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly path: string;
  readonly terms: Terms;
  /** The whole body. Throws Refused. */
  body(): Promise<Uint8Array>;
}

/** What is sent back: an object as JSON, or bytes with headers that say what they are. */
export interface Reply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a port serves, beside `/health/live` and `/health/ready`. */
export interface Site {
  /** The headers of every answer that have the request's id. */
  readonly idHeaders: readonly string[];
  /** Throws Refused, or an error that is a fault of the program. */
  serve(exchange: Exchange): Promise<Reply>;
  /** The answer to a request for `path` that is refused. */
  refuse(path: string, refused: Refused): Reply;
  /** What a path is called in logs and metrics, if there is something to call. */
  routeOf(path: string): string | undefined;
}

const HEALTH = /^\/health\/(live|ready)$/;
const MAX_BODY_BYTES = 1024 * 1024;
/** Milliseconds that a request has, unless its caller says less. */
const MOST_TIME = 30_000;
/** Milliseconds in which an answer must have been read. */
const WRITE_TIME = 30_000;
/** Milliseconds without a byte after which a connection is closed: more than a request may take. */
const IDLE_TIME = 75_000;
const [CONNECTIONS, CONNECTIONS_EACH, REQUESTS, REQUESTS_EACH] = [1024, 512, 256, 192];
/** Milliseconds that accepted requests have to finish. */
const DRAIN_GRACE = 30_000;

/** A port that listens until it is stopped. */
export class Port {
  #stopping = false;
  readonly #site: Site;
  readonly #umpire: Umpire;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #server: Server;
  readonly #requests = new Places(REQUESTS, REQUESTS_EACH);

  constructor(site: Site, umpire: Umpire, logger: Logger, metrics: Metrics) {
    this.#site = site;
    this.#umpire = umpire;
    this.#logger = logger;
    this.#metrics = metrics;
    const connections = new Places(CONNECTIONS, CONNECTIONS_EACH);
    const times = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5000 };
    this.#server = createServer({ ...times, keepAliveTimeout: IDLE_TIME }, (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        logger.error({ err: error }, 'a fault that left a request without an answer');
        request.socket.destroy();
      });
    });
    this.#server.setTimeout(IDLE_TIME).on('connection', (socket) => {
      const release = connections.take(socket.remoteAddress ?? '');
      if (typeof release === 'string') socket.destroy();
      else socket.once('close', release);
    });
  }

  /** Listens; resolves to the port. Rejects with the system's error. */
  async listen(port: number, host: string): Promise<number> {
    await once(this.#server.listen(port, host), 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * Says that it is not ready, goes on accepting for `delay` milliseconds, and finishes what it accepted, within
   * bounds.
   */
  async stop(delay: number): Promise<void> {
    this.#stopping = true;
    await new Promise((resolve) => setTimeout(resolve, delay));
    const closed = new Promise((resolve) => this.#server.close(resolve));
    const timer = setTimeout(() => this.#server.closeAllConnections(), DRAIN_GRACE);
    await closed;
    clearTimeout(timer);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const began = performance.now();
    const [path = ''] = (request.url ?? '').split('?', 1);
    const leaving = new AbortController();
    const address = request.socket.remoteAddress ?? '';
    const requestId = idOf(request);
    const isProbe = HEALTH.test(path);
    const release = isProbe ? undefined : this.#requests.take(address);
    // A place is held until the answer has been read.
    response.once('close', () => {
      if (!response.writableFinished) leaving.abort();
      if (typeof release === 'function') release();
    });
    let reply: Reply;
    try {
      if (release === 'all') throw new Refused('OVERLOADED', 'there are as many requests as fit', { retryAfter: 1 });
      if (release === 'address')
        throw new Refused('CONCURRENCY_LIMIT_EXCEEDED', 'the address has too many requests', { retryAfter: 1 });
      const terms = termsOf(request, address, requestId, leaving.signal, began);
      const body = () => readBody(request, leaving.signal);
      reply = isProbe ? await this.health(path) : await this.#site.serve({ request, path, terms, body });
    } catch (error) {
      if (!(error instanceof Refused)) this.#logger.error({ err: error, requestId }, 'a fault');
      else if (error.cause !== undefined)
        this.#logger.warn({ err: error.cause, requestId }, 'the service does not answer');
      const refused = error instanceof Refused ? error : new Refused('INTERNAL', 'it failed');
      const { headers, ...refusal } = this.#site.refuse(path, refused);
      reply = { ...refusal, headers: { ...headersOf(refused), ...headers } };
    }
    request.resume();
    // A caller that has left by now closes it no more.
    if (!response.closed) {
      const unread = setTimeout(() => request.socket.destroy(), WRITE_TIME);
      response.once('close', () => clearTimeout(unread));
    }
    const ids = Object.fromEntries(this.#site.idHeaders.map((name) => [name, requestId]));
    send(response, reply, { ...ids, ...(this.#stopping ? { connection: 'close' } : {}) });
    const ms = performance.now() - began;
    const route = isProbe ? path : (this.#site.routeOf(path) ?? 'none');
    const status = leaving.signal.aborted ? 499 : reply.status;
    this.#metrics.request(route, status, ms / 1000);
    this.#logger.info({ requestId, method: request.method, route, status, ms: Math.round(ms) }, 'request');
  }

  /** The answer to a probe, which no flood of requests keeps from being answered. */
  async health(path: string): Promise<Reply> {
    if (!HEALTH.test(path)) return { status: 404, body: {} };
    const ok = path === '/health/live' || (!this.#stopping && (await this.#umpire.isReady()));
    return { status: ok ? 200 : 503, body: { status: ok ? 'ok' : 'unavailable' } };
  }
}

/** The caller's own id where it can be logged as it is, or a new one. */
function idOf({ headers }: IncomingMessage): string {
  const own = headers['x-request-id'];
  return typeof own === 'string' && /^[\w.:-]{1,128}$/.test(own) ? own : `req_${randomBytes(12).toString('base64url')}`;
}

function termsOf(
  { headers }: IncomingMessage,
  address: string,
  requestId: string,
  signal: AbortSignal,
  began: number,
): Terms {
  const { authorization, 'x-forwarded-for': before = '', 'x-stainless-timeout': seconds } = headers;
  if (authorization !== undefined && !isPlain(authorization))
    throw new Refused('AUTHENTICATION_REQUIRED', 'the key is none of this service');
  // OpenAI's clients say how many seconds they wait.
  const own = typeof seconds === 'string' && /^[1-9]\d{0,5}$/.test(seconds) ? 1000 * Number(seconds) : MOST_TIME;
  return {
    headers: {
      'x-request-id': requestId,
      // What the service could not read would be refused there.
      'x-forwarded-for': isPlain(before) ? `${before}, ${address}` : address,
      ...(authorization === undefined ? {} : { authorization }),
    },
    signal,
    deadline: began + Math.min(own, MOST_TIME),
  };
}

const isPlain = (value: unknown): boolean =>
  typeof value === 'string' && /^[\x21-\x7e][\x20-\x7e]{0,1023}$/.test(value);

function headersOf({ reason, retryAfter }: Refused): Readonly<Record<string, string>> {
  if (reason === 'AUTHENTICATION_REQUIRED') return { 'www-authenticate': 'Bearer' };
  return retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
}

async function readBody(request: IncomingMessage, signal: AbortSignal): Promise<Uint8Array> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!/^application\/json *(;|$)/i.test(type))
    throw new Refused('UNSUPPORTED_MEDIA_TYPE', 'the body must be application/json');
  if (encoding !== 'identity') throw new Refused('UNSUPPORTED_ENCODING', 'the body must not be compressed');
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const parts: Buffer[] = [];
  let bytes = Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES ? MAX_BODY_BYTES + 1 : 0;
  const take = (part: Buffer): void => {
    bytes += part.length;
    if (bytes <= MAX_BODY_BYTES) parts.push(part);
    else reject(new Refused('BODY_TOO_LARGE', `the body is larger than ${MAX_BODY_BYTES} bytes`));
  };
  take(Buffer.alloc(0));
  request.on('data', take).once('end', () => resolve(Buffer.concat(parts)));
  signal.addEventListener('abort', () => reject(new Refused('CANCELED', 'the caller left')), { once: true });
  return await promise;
}

function send(response: ServerResponse, { status, body, headers }: Reply, always: Record<string, string>): void {
  if (response.destroyed) return;
  const bytes = body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
  const length = { 'content-type': 'application/json', 'content-length': bytes.length };
  response.writeHead(status, { ...length, ...always, ...headers }).end(bytes);
}
