/**
 * A client of one HTTP/1.1 server: kept connections, bounded answers, calls that end at a deadline or when nobody
 * waits.
 */
import { Agent as ClearAgent, type IncomingMessage, type RequestOptions, request as requestInClear } from 'node:http';
import { request as requestOverTls, Agent as TlsAgent } from 'node:https';
import { CallFailed, malformed } from '../call-failed.ts';
import type { InferenceTerms } from '../calls.ts';
import type { TlsCredentials } from '../server-options.ts';

/** Where the server is, and what bounds its answers. */
export interface HttpClientOptions {
  readonly address: string;
  /** Undefined for a connection in clear. */
  readonly tls: TlsCredentials | undefined;
  /** A token that is sent with every request. */
  readonly token: string | undefined;
  /** The header that it is sent in as it is; left out, it is a bearer token. */
  readonly tokenHeader?: string | undefined;
  /** Requests in flight, not counting those that ask for readiness. */
  readonly requests: number;
  /** The largest body of an answer. */
  readonly answerBytes: number;
}

/** One request; `body` is JSON. */
export type HttpRequest =
  | { readonly method: 'GET'; readonly path: string }
  | { readonly method: 'POST'; readonly path: string; readonly body: string };

/** What came back, whatever its status. */
export interface HttpAnswer {
  readonly status: number;
  /** As the server wrote it. */
  readonly retryAfter: string | undefined;
  readonly body: Buffer;
}

/** Requests to one server over kept connections, until `close`. */
export interface HttpClient {
  /** Rejects with CallFailed if there is no answer, or none within the bounds. */
  exchange(request: HttpRequest, terms: InferenceTerms): Promise<HttpAnswer>;
  /** Ends all connections; calls under way fail. */
  close(): void;
}

/**
 * A connection that is idle for this many milliseconds is closed before the server closes it just as the next request
 * is sent: many do so after five seconds.
 */
const LONGEST_IDLE = 4000;
/** The most bytes of an answer's first line and headers. */
const HEADER_BYTES = 16_384;

/** Connects with the first call. */
export function createHttpClient({
  address,
  tls,
  token,
  tokenHeader,
  requests,
  answerBytes,
}: HttpClientOptions): HttpClient {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  const port = Number(address.slice(colon + 1));
  // One more connection, so that a server whose others are all busy can be asked whether it is ready.
  const pool = { keepAlive: true, maxSockets: requests + 1, timeout: LONGEST_IDLE };
  const agent =
    tls === undefined
      ? new ClearAgent(pool)
      : new TlsAgent({
          ...pool,
          ...(tls.ca && { ca: tls.ca }),
          ...(tls.certificate && { cert: tls.certificate }),
          ...(tls.key && { key: tls.key }),
          ...(tls.serverName !== undefined && { servername: tls.serverName }),
          minVersion: 'TLSv1.2',
          rejectUnauthorized: true,
        });
  const send = tls === undefined ? requestInClear : requestOverTls;
  const headers: Readonly<Record<string, string>> = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'umpire',
    ...(tls?.serverName !== undefined && { host: `${tls.serverName}:${port}` }),
    ...(token !== undefined &&
      (tokenHeader === undefined ? { authorization: `Bearer ${token}` } : { [tokenHeader]: token })),
  };

  return {
    exchange: (request, terms) => {
      const body = request.method === 'POST' ? Buffer.from(request.body) : undefined;
      const options: RequestOptions = {
        agent,
        host,
        port,
        method: request.method,
        path: request.path,
        headers: body ? { ...headers, 'content-type': 'application/json', 'content-length': body.length } : headers,
        maxHeaderSize: HEADER_BYTES,
      };
      return exchangeOnce((take) => send(options, take), body, answerBytes, terms);
    },
    close: () => agent.destroy(),
  };
}

type Send = (take: (response: IncomingMessage) => void) => ReturnType<typeof requestInClear>;

/** Sends a request and collects its answer; the socket of one that fails is destroyed. */
function exchangeOnce(
  send: Send,
  body: Buffer | undefined,
  answerBytes: number,
  { signal, within }: InferenceTerms,
): Promise<HttpAnswer> {
  if (signal.aborted) return Promise.reject(new CallFailed('canceled', 'nobody waits for it any more'));
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', leave);
    };
    const fail = (error: CallFailed): void => {
      settle();
      reject(error);
      sent.destroy();
    };
    const leave = (): void => fail(new CallFailed('canceled', 'nobody waits for it any more'));
    const late = (): void => fail(new CallFailed('timed_out', `it did not answer within ${Math.round(within)} ms`));
    let answered = false;
    const sent = send((response) => {
      answered = true;
      collect(response, answerBytes).then((answer) => {
        settle();
        resolve(answer);
      }, fail);
    });
    // Either the connection breaks, or it ends without an answer.
    sent.on('error', (error: NodeJS.ErrnoException) => fail(unreached(error)));
    sent.on('close', () => {
      if (!answered) fail(new CallFailed('unavailable', 'the connection ended before an answer'));
    });
    const timer = setTimeout(late, within);
    signal.addEventListener('abort', leave, { once: true });
    sent.end(body);
  });
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
