/**
 * A model server over HTTP for tests, on a real socket. What it says is a dialect's; how it fails is the same for all
 * of them, and a test may change it at any time.
 */
import { createHash } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { type Fault, misbehave, type Reply, send } from './faults.ts';

/** What a server says. */
export interface ServedDialect {
  /** The path of requests for scores. */
  readonly path: string;
  /** What somebody without the right token is told. */
  readonly unauthorised: Reply;
  /** How many texts a body asks about. */
  rows(body: unknown): number;
  /** Answers a body, or refuses it. */
  answer(body: unknown, text: string): Promise<Reply>;
}

/** One request for scores as it arrived. */
export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: unknown;
  readonly rows: number;
  /** Path and body, hashed. */
  readonly digest: string;
  /** Bytes of a response that never ends which were handed over so far. */
  sent: number;
  /** Whether the client gave it up. */
  canceled: boolean;
}

/** How the server behaves now. */
export interface HttpBehaviour {
  /** Whether it says of itself that it is well. */
  healthy: boolean;
  /** Milliseconds before a request for scores is answered. */
  delay: number;
  /** Whether it answers nothing at all. What came meanwhile is answered when it goes on. */
  frozen: boolean;
  /** The bearer token that it wants; undefined for none. */
  token: string | undefined;
  /** What happens instead of an answer; undefined for answers. */
  fault: Fault | undefined;
  /** So many requests that meet the fault; then it is cleared. */
  faultFor: number;
  /** Changes the body of an answer; a text is sent as it is. */
  falsify: (body: never) => unknown;
}

/** A server that listens. */
export interface HttpModelServer {
  readonly address: string;
  readonly behaviour: HttpBehaviour;
  readonly requests: readonly SeenRequest[];
  /** The most requests for scores that were under way at a time. */
  readonly busiest: number;
  /** Connections that were made so far. */
  readonly connections: number;
  /** The headers of the last request, whatever became of it. */
  readonly lastAsked: IncomingHttpHeaders | undefined;
  /** Cuts all connections and stops listening. */
  kill(): Promise<void>;
  /** Listens again, on the same port. */
  revive(): Promise<void>;
}

const MOST_BYTES = 2 ** 26;
/** The paths that say whether a server is well; they need no token. */
const HEALTH: ReadonlySet<string | undefined> = new Set(['/health', '/v1/models']);

/** Starts a server that ends with its test; with `tls` it speaks https. */
export async function startHttpModelServer(
  t: ExecutionContext<unknown>,
  dialect: ServedDialect,
  { tls }: { readonly tls?: ServerOptions } = {},
): Promise<HttpModelServer> {
  const served = new ModelServer(dialect, tls);
  await served.revive();
  t.teardown(() => served.kill());
  return served;
}

class ModelServer implements HttpModelServer {
  readonly behaviour: HttpBehaviour = {
    healthy: true,
    delay: 0,
    frozen: false,
    token: undefined,
    fault: undefined,
    faultFor: Number.POSITIVE_INFINITY,
    falsify: (body) => body,
  };
  readonly requests: SeenRequest[] = [];
  busiest = 0;
  connections = 0;
  lastAsked: IncomingHttpHeaders | undefined;
  readonly #dialect: ServedDialect;
  readonly #tls: ServerOptions | undefined;
  #port = 0;
  #server: Server | undefined;
  #underWay = 0;

  constructor(dialect: ServedDialect, tls: ServerOptions | undefined) {
    this.#dialect = dialect;
    this.#tls = tls;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async revive(): Promise<void> {
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      // A client that is gone is nobody's concern here.
      request.on('error', () => {});
      this.#handle(request, response).catch((error: unknown) => {
        if (!response.headersSent) send(response, { status: 500, body: String(error) });
      });
    };
    const server = this.#tls === undefined ? createServer(handle) : createTlsServer(this.#tls, handle);
    server.on('connection', () => this.connections++);
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
  }

  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.behaviour.frozen = false;
    server?.close();
    server?.closeAllConnections();
    // Ending the process in the middle of a run would abort it.
    while (this.#underWay > 0) await pause(5);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { path, unauthorised } = this.#dialect;
    this.lastAsked = request.headers;
    while (this.behaviour.frozen) await pause(5);
    const [wanted] = (request.url ?? '').split('?');
    if (request.method === 'GET' && HEALTH.has(wanted)) {
      send(response, { status: this.behaviour.healthy ? 200 : 503, body: {} });
      return;
    }
    const { token } = this.behaviour;
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      send(response, unauthorised);
      return;
    }
    if (request.method === 'POST' && wanted === path) {
      await this.#score(request, response);
      return;
    }
    send(response, { status: 404, body: { error: 'Not Found' } });
  }

  async #score(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await read(request);
    const body: unknown = JSON.parse(text);
    const seen: SeenRequest = {
      path: request.url ?? '',
      headers: request.headers,
      text,
      body,
      rows: this.#dialect.rows(body),
      digest: createHash('sha256').update(`${request.url}\n${text}`).digest('hex'),
      sent: 0,
      canceled: false,
    };
    this.requests.push(seen);
    response.on('close', () => {
      if (!response.writableFinished) seen.canceled = true;
    });
    this.busiest = Math.max(this.busiest, ++this.#underWay);
    try {
      await until(response, this.behaviour.delay);
      if (response.destroyed) return;
      const { fault, falsify } = this.behaviour;
      const right = await this.#dialect.answer(body, text);
      if (fault === undefined) {
        send(response, right.status === 200 ? { ...right, body: falsify(right.body as never) } : right);
        return;
      }
      if (--this.behaviour.faultFor <= 0) {
        this.behaviour.fault = undefined;
        this.behaviour.faultFor = Number.POSITIVE_INFINITY;
      }
      await misbehave(response, fault, right, (bytes) => {
        seen.sent += bytes;
      });
    } finally {
      this.#underWay--;
    }
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MOST_BYTES) throw new Error('a request of a test is too large');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

/** Waits, but not for a client that is gone. */
async function until(response: ServerResponse, milliseconds: number): Promise<void> {
  for (const end = performance.now() + milliseconds; performance.now() < end && !response.destroyed; ) await pause(5);
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
