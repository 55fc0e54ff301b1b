/** One request of the kit, and what HTTP/1.1 and HTTP/2 make of it alike. */
import type { OutgoingHttpHeaders } from 'node:http';
import type { Answer } from './answer.ts';

/** One request that a check makes. */
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

/** Sends a request. Rejects with Silence, or with the error of the connection. */
export type Send = (call: Call) => Promise<Answer>;

/** Where and how. PEM texts. */
export interface Target {
  readonly url: URL;
  readonly ca?: string | undefined;
  /** Takes any certificate. */
  readonly insecure?: boolean;
  /** Milliseconds that an answer may take. */
  readonly timeout: number;
}

/** No answer came in time. */
export class Silence extends Error {
  override readonly name = 'Silence';
  constructor(timeout: number) {
    super(`no answer within ${timeout / 1000} s`);
  }
}

/** Bytes that an answer may have. */
const MAX_ANSWER = 8 * 1024 * 1024;

/** The settings of TLS. */
export function tlsOf({ ca, insecure = false }: Target) {
  return { rejectUnauthorized: !insecure, ...(ca === undefined ? {} : { ca }) };
}

/** The path below that of the address. */
export function pathOf(url: URL, { path }: Call): string {
  return url.pathname.replace(/\/$/, '') + path;
}

/** The method that a request goes out with. */
export function methodOf({ method, body }: Call): string {
  return method ?? (body === undefined ? 'GET' : 'POST');
}

/** The headers, those of a body included. */
export function headersOf({ headers, body }: Call): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = {
    'user-agent': 'umpire-conformance',
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    ...headers,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** Gathers a body up to its bound. */
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
