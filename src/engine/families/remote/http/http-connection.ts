/**
 * The connection to an HTTP/1.1 server that a package names: JSON in, JSON out, to one path. Neither the server nor the
 * environment has a say in it: no redirects are followed, no proxies are used, and answers are bounded in bytes, time
 * and depth. Connections are kept; calls end at a deadline or when nobody waits.
 */
import { Agent as ClearAgent, type IncomingMessage, type RequestOptions, request as requestInClear } from 'node:http';
import { request as requestOverTls, Agent as TlsAgent } from 'node:https';
import type { Family, FamilyParts } from '../../family.ts';
import { CallFailed, malformed, reasonOf } from '../call-failed.ts';
import type { InferenceJob, InferenceTerms } from '../calls.ts';
import type { RemoteOptions } from '../options.ts';
import { createRemoteFamily } from '../remote-family.ts';
import type { Connection } from '../remote-server.ts';
import type { Scorer } from '../scorer.ts';
import { type HttpServerOptions, readCredentials, readToken, type TlsCredentials } from '../server-options.ts';
import { failureOf, type HttpAnswer, readinessOf } from './answers.ts';
import { parseJson, usageIn } from './parse-json.ts';

/** What a connection is made of. */
export interface HttpConnectionOptions {
  readonly server: HttpServerOptions;
  readonly bounds: {
    /** Requests that may be in flight at one time, not counting those that ask for readiness. */
    readonly requests: number;
    /** The most bytes of an answer. */
    readonly messageBytes: number;
  };
}

/**
 * Sends a body with so many rows, and reads the answer with `read`. `body` is JSON text, which the dialect writes
 * itself: the order of an object's fields may matter. Rejects with CallFailed, and with what `read` throws.
 */
export type Post = <T>(body: string, rows: number, call: InferenceJob, read: (answer: unknown) => T) => Promise<T>;

/**
 * Makes the family of a package whose server speaks HTTP. `scorer` makes logits of what it posts; it may keep the
 * server's results for choices if `keeps`, which is never so unless it `keepsChoices`. Throws as `createRemoteFamily`.
 */
export async function createHttpFamily(
  parts: FamilyParts,
  options: RemoteOptions & HttpConnectionOptions,
  scorer: (post: Post, keeps: boolean) => Scorer,
  keepsChoices = false,
): Promise<Family> {
  return await createRemoteFamily<HttpConnection>(parts, options, {
    open: () => openHttpConnection(options, parts.folder),
    keepsChoices,
    scorer({ server, keeps }) {
      const post: Post = (body, rows, call, read) =>
        server.call({ rows, bytes: Buffer.byteLength(body) }, call, async (connection, terms) =>
          read(await connection.post(body, terms)),
        );
      return scorer(post, keeps);
    },
  });
}

/** Connects with the first call. Rejects with an Error that names the TLS file or token that cannot be used. */
export async function openHttpConnection(
  { server, bounds }: HttpConnectionOptions,
  folder: string,
): Promise<HttpConnection> {
  const token = await readToken(server.token, folder);
  return new HttpConnection(server, bounds, await readCredentials(server.tls, folder), token);
}

/** How long a server may take to say whether it is ready, milliseconds. */
const PATIENCE = 2000;
/**
 * A connection that is idle for this many milliseconds is closed before the server closes it just as the next request
 * is sent: many do so after five seconds.
 */
const LONGEST_IDLE = 4000;
/** The most bytes of an answer's first line and headers. */
const HEADER_BYTES = 16_384;

/**
 * One server, until `close`. HTTP servers say too little about their models, and each says it in a different place: the
 * canary has to tell whether it is the right one.
 */
class HttpConnection implements Connection {
  readonly #server: HttpServerOptions;
  readonly #answerBytes: number;
  readonly #token: string | undefined;
  readonly #agent: ClearAgent;
  readonly #send: typeof requestInClear;
  readonly #options: RequestOptions;

  constructor(
    server: HttpServerOptions,
    { requests, messageBytes }: HttpConnectionOptions['bounds'],
    tls: TlsCredentials | undefined,
    token: string | undefined,
  ) {
    const { address, tokenHeader } = server;
    const colon = address.lastIndexOf(':');
    const port = Number(address.slice(colon + 1));
    // One more connection, so that a server whose others are all busy can be asked whether it is ready.
    const pool = { keepAlive: true, maxSockets: requests + 1, timeout: LONGEST_IDLE };
    this.#server = server;
    this.#answerBytes = messageBytes;
    this.#token = token;
    this.#agent = tls === undefined ? new ClearAgent(pool) : new TlsAgent({ ...pool, ...tlsOptions(tls) });
    this.#send = tls === undefined ? requestInClear : requestOverTls;
    this.#options = {
      agent: this.#agent,
      host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'),
      port,
      maxHeaderSize: HEADER_BYTES,
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'umpire',
        ...(tls?.serverName !== undefined && { host: `${tls.serverName}:${port}` }),
        ...(token !== undefined &&
          (tokenHeader === undefined ? { authorization: `Bearer ${token}` } : { [tokenHeader]: token })),
      },
    };
  }

  async readinessProblem(): Promise<string | undefined> {
    const { address, health } = this.#server;
    const place = `the inference server at ${address}`;
    try {
      const terms = { signal: new AbortController().signal, within: PATIENCE };
      const problem = readinessOf(await this.#exchange({ method: 'GET', path: health }, undefined, terms));
      return problem && `${place} ${problem} (GET ${health})`;
    } catch (error) {
      return `${place} cannot be asked: ${reasonOf(error)}`;
    }
  }

  /** Sends a body to the server's path and reads the answer. `body` is JSON text. Rejects with CallFailed. */
  async post(body: string, terms: InferenceTerms): Promise<unknown> {
    const { path } = this.#server;
    const bytes = Buffer.from(body);
    const headers = { ...this.#options.headers, 'content-type': 'application/json', 'content-length': bytes.length };
    const answer = await this.#exchange({ method: 'POST', path, headers }, bytes, terms);
    if (answer.status !== 200) throw failureOf(answer, path, this.#token);
    const said = parseJson(answer.body);
    terms.used?.(usageIn(said));
    return said;
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Sends a request and collects its answer; the socket of one that fails is destroyed. Rejects with CallFailed. */
  #exchange(
    request: RequestOptions,
    body: Buffer | undefined,
    { signal, within }: InferenceTerms,
  ): Promise<HttpAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    const leave = (): void => reject(new CallFailed('canceled', 'nobody waits for it any more'));
    if (signal.aborted) {
      leave();
      return promise;
    }
    const late = (): void => reject(new CallFailed('timed_out', `it did not answer within ${Math.round(within)} ms`));
    let answered = false;
    const sent = this.#send({ ...this.#options, ...request }, (response) => {
      answered = true;
      collect(response, this.#answerBytes).then(resolve, reject);
    });
    // Either the connection breaks, or it ends without an answer.
    sent.on('error', (error: NodeJS.ErrnoException) => reject(unreached(error)));
    sent.on('close', () => {
      if (!answered) reject(new CallFailed('unavailable', 'the connection ended before an answer'));
    });
    const timer = setTimeout(late, within);
    signal.addEventListener('abort', leave, { once: true });
    sent.end(body);
    return promise
      .catch((error: unknown) => {
        sent.destroy();
        throw error;
      })
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener('abort', leave);
      });
  }
}

function tlsOptions({ ca, certificate, key, serverName }: TlsCredentials) {
  return {
    ...(ca && { ca }),
    ...(certificate && { cert: certificate }),
    ...(key && { key }),
    ...(serverName !== undefined && { servername: serverName }),
    minVersion: 'TLSv1.2' as const,
    rejectUnauthorized: true,
  };
}

/** The answer, read to its end. Rejects with CallFailed. */
async function collect(response: IncomingMessage, answerBytes: number): Promise<HttpAnswer> {
  const tooLarge = (): CallFailed => malformed(`the answer has more than ${answerBytes} bytes`);
  if (Number(response.headers['content-length'] ?? 0) > answerBytes) throw tooLarge();
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw malformed('the answer is compressed, though it was to be sent as it is');
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > answerBytes) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof CallFailed) throw error;
    throw unreached(error as NodeJS.ErrnoException);
  }
  const retryAfter = response.headers['retry-after'];
  return { status: response.statusCode ?? 0, retryAfter, body: Buffer.concat(chunks) };
}

/** Node's codes name what happened; its messages may name addresses, but nothing of a caller's texts. */
function unreached({ code, message }: NodeJS.ErrnoException): CallFailed {
  // A parser's errors: what came back is not HTTP.
  if (code?.startsWith('HPE_')) return malformed(`the answer is not HTTP (${code})`);
  return new CallFailed('unavailable', `the connection failed (${code ?? 'no code'})`, { details: message });
}
