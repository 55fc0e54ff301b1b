/** One request of the kit, and what HTTP/1.1 and HTTP/2 have in common in sending it. */
import type { OutgoingHttpHeaders } from 'node:http';
import type { Answer } from './answer.ts';

/** One request that a check makes. */
export interface Call {
  readonly path: string;
  /** By default POST with a body, GET without. */
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** Sent with its length, and as JSON unless the headers say otherwise. */
  readonly body?: string | Uint8Array;
  /**
   * Sends it once even if the answer says when to try again, since the check is about that answer. A request that
   * a limit refused is sent again all the same.
   */
  readonly once?: boolean;
}

/** Sends a request. Rejects with Silence, or with the error of the connection. */
export type Send = (call: Call) => Promise<Answer>;

/** Where requests go, and how. */
export interface Target {
  readonly url: URL;
  /** A certificate authority, PEM. */
  readonly ca?: string | undefined;
  /** Accepts any certificate. */
  readonly insecure?: boolean;
  /** Milliseconds that a whole answer may take. */
  readonly timeout: number;
}

/** No answer came in time. */
export class Silence extends Error {
  override readonly name = 'Silence';
  constructor(timeout: number) {
    super(`no answer within ${timeout / 1000} s`);
  }
}

/** Bytes that an answer's body may have: what answers may not be Umpire, and its answer must fit into memory. */
const MAX_ANSWER = 8 * 1024 * 1024;

/** The options of Node's TLS for a target. */
export function tlsOf({ ca, insecure = false }: Target) {
  return { rejectUnauthorized: !insecure, ...(ca === undefined ? {} : { ca }) };
}

/** The path of a request, below the path of the deployment's address. */
export function pathOf(url: URL, { path }: Call): string {
  return url.pathname.replace(/\/$/, '') + path;
}

/** The method of a request, its default included. */
export function methodOf({ method, body }: Call): string {
  return method ?? (body === undefined ? 'GET' : 'POST');
}

/** The headers of a request, those that a body needs included. */
export function headersOf({ headers, body }: Call): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = {
    'user-agent': 'umpire-conformance',
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    ...headers,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** Gathers the chunks of a body; `tooLong` is called once it exceeds `MAX_ANSWER`. */
export function createGatherer(tooLong: (error: Error) => void): { add(chunk: Buffer): void; bytes(): Buffer } {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk) {
      size += chunk.length;
      if (size > MAX_ANSWER) tooLong(new Error('the answer is too long'));
      else chunks.push(chunk);
    },
    bytes: () => Buffer.concat(chunks),
  };
}
