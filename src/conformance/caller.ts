/**
 * HTTP/1.1 and HTTP/2 requests to one deployment: bounded in time and size, a few connections that are kept, and patient. An answer that says
 * when to try again is, within a bound; a limit that lasts longer skips the check.
 */
import { Agent as HttpAgent, request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, show } from './answer.ts';
import { BrokenPromise, Skipped } from './check.ts';

/** One request. */
export interface Call {
  readonly path: string;
  /** Default: POST with a body, GET without. */
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** Sent with its length, and as JSON unless the headers say otherwise. */
  readonly body?: string | Uint8Array;
  /** Whether an answer that says when to try again is what the check is about, unless a limit gave it. */
  readonly once?: boolean;
}

/** Sends requests. */
export interface Caller {
  http1(call: Call): Promise<Answer>;
  http2(call: Call): Promise<Answer>;
  close(): void;
}

/** Where and how. PEM texts. */
export interface CallerOptions {
  readonly url: URL;
  /** Where HTTP/2 is spoken, if not under the same address. */
  readonly http2Url?: URL | undefined;
  readonly ca?: string | undefined;
  /** Takes any certificate. */
  readonly insecure?: boolean;
}

const TIMEOUT = 30_000;
const MAX_ANSWER = 8 * 1024 * 1024;
/** Milliseconds that one request may wait for limits, and all of them together. */
const PATIENCE = 20_000;
const SHORTEST_WAIT = 100;
const PATIENCE_IN_ALL = 120_000;

/** A caller. */
export function createCaller({ url, http2Url = url, ca, insecure = false }: CallerOptions): Caller {
  const tls = { rejectUnauthorized: !insecure, ...(ca === undefined ? {} : { ca }) };
  const secure = url.protocol === 'https:';
  const agent = secure
    ? new HttpsAgent({ keepAlive: true, maxSockets: 8, ...tls })
    : new HttpAgent({ keepAlive: true, maxSockets: 8 });
  let session: ClientHttp2Session | undefined;
  // Whether the peer has shown that it speaks HTTP/2.
  let spoken = false;
  let waited = 0;

  const overHttp1 = ({ path, method, headers, body }: Call): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const sent = (secure ? httpsRequest : httpRequest)(
        {
          agent,
          host: url.hostname.replace(/^\[|\]$/g, ''),
          port: url.port,
          path: prefixed(url, path),
          method: methodOf(method, body),
          headers: headersOf(headers, body),
        },
        (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on('data', (chunk: Buffer) => {
            size += chunk.length;
            if (size > MAX_ANSWER) response.destroy(new Error('the answer is too long'));
            else chunks.push(chunk);
          });
          response.on('error', reject);
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(chunks),
              trailers: response.trailers,
            }),
          );
        },
      );
      sent.setTimeout(TIMEOUT, () => sent.destroy(new Error(`no answer within ${TIMEOUT / 1000} s`)));
      sent.on('error', reject);
      sent.end(body);
    });

  const open = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(http2Url.origin, tls);
      session.on('error', () => {});
      session.once('remoteSettings', () => {
        spoken = true;
      });
    }
    return session;
  };

  const overHttp2 = ({ path, method, headers, body }: Call): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const opened = open();
      const failed = (error: Error): void => reject(spoken ? error : noHttp2(http2Url, error));
      if (opened.connecting) opened.once('error', failed);
      const stream = opened.request({
        ':method': methodOf(method, body),
        ':path': prefixed(http2Url, path),
        ...headersOf(headers, body),
      });
      const chunks: Buffer[] = [];
      let size = 0;
      let received: OutgoingHttpHeaders = {};
      let trailers: OutgoingHttpHeaders | undefined;
      stream.setTimeout(TIMEOUT, () => stream.destroy(new Error(`no answer within ${TIMEOUT / 1000} s`)));
      stream.on('response', (got) => {
        received = got;
      });
      stream.on('trailers', (got) => {
        trailers = got;
      });
      stream.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_ANSWER) stream.destroy(new Error('the answer is too long'));
        else chunks.push(chunk);
      });
      stream.on('error', failed);
      stream.on('close', () => {
        opened.off('error', failed);
        failed(new Error('the stream was closed without an answer'));
      });
      stream.on('end', () =>
        resolve({
          status: Number(received[':status'] ?? 0),
          headers: received as Answer['headers'],
          body: Buffer.concat(chunks),
          trailers: (trailers ?? received) as Answer['trailers'],
        }),
      );
      stream.end(body);
    });

  const patiently = async (send: (call: Call) => Promise<Answer>, call: Call): Promise<Answer> => {
    for (let own = 0; ; ) {
      const answer = await send(call).catch((error: unknown) => {
        if (error instanceof BrokenPromise) throw error;
        throw new BrokenPromise(`${methodOf(call.method, call.body)} ${call.path}: ${textOf(error)}`);
      });
      const wait = call.once === true && !isLimit(answer) ? undefined : retryTime(answer);
      if (wait === undefined) return answer;
      if (own + wait > PATIENCE || waited + wait > PATIENCE_IN_ALL) {
        if (isLimit(answer))
          throw new Skipped(`a limit of this deployment is in the way: ${show(answer.body.toString())}`);
        return answer;
      }
      own += wait;
      waited += wait;
      await sleep(wait);
    }
  };

  return {
    http1: (call) => patiently(overHttp1, call),
    http2: (call) => patiently(overHttp2, call),
    close() {
      agent.destroy();
      session?.close();
    },
  };
}

const RESOURCE_EXHAUSTED = '8';

function isLimit({ status, trailers }: Answer): boolean {
  return status === 429 || trailers['grpc-status'] === RESOURCE_EXHAUSTED;
}

/** Milliseconds after which the request may be tried again; undefined if it need not be. A limit that names no time is one that lasts. */
function retryTime(answer: Answer): number | undefined {
  const { headers, trailers } = answer;
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const pushback = Number(trailers['grpc-retry-pushback-ms'] ?? Number.NaN);
  const milliseconds = Number.isNaN(seconds) ? pushback : seconds * 1000;
  if (milliseconds >= 0) return Math.max(milliseconds, SHORTEST_WAIT);
  return isLimit(answer) ? Number.POSITIVE_INFINITY : undefined;
}

function prefixed(url: URL, path: string): string {
  return url.pathname.replace(/\/$/, '') + path;
}

function methodOf(method: string | undefined, body: string | Uint8Array | undefined): string {
  return method ?? (body === undefined ? 'GET' : 'POST');
}

function headersOf(
  headers: OutgoingHttpHeaders | undefined,
  body: string | Uint8Array | undefined,
): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = {
    'user-agent': 'umpire-conformance',
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    ...headers,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

function noHttp2(url: URL, error: Error): BrokenPromise {
  const hint =
    url.protocol === 'https:'
      ? 'the TLS end, perhaps a proxy, does not offer h2 by ALPN'
      : 'what listens there, perhaps a proxy, does not speak HTTP/2 in cleartext';
  return new BrokenPromise(`no HTTP/2 at ${url.origin} (${textOf(error)}): ${hint}; --grpc names another address`);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code) : String(error);
}
