/** Answers as the kit reads them, and the first questions about each: is it JSON, and is it the service's own? */
import type { IncomingHttpHeaders } from 'node:http';
import { BrokenPromise } from './outcome.ts';

/** One answer over HTTP, with its whole body. */
export interface Answer {
  readonly status: number;
  /** With names in lower case. */
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The trailers of gRPC; for an answer without a body, its headers, which then carry the status. */
  readonly trailers: IncomingHttpHeaders;
}

/** The form of a request id. */
export const REQUEST_ID = /^req_[A-Za-z0-9_-]+$/;

/** Characters of a value that a message shows: two lines of a terminal of 80 columns. */
const SHOWN = 160;

/** A value as JSON for a message, cut to `SHOWN` characters. */
export function show(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/**
 * Who probably gave an answer that is not the service's own, for the end of a message; empty if nothing suggests that
 * somebody else gave it.
 */
export function likelyCause({ status, headers }: Answer): string {
  const type = String(headers['content-type'] ?? 'no content type');
  const server = headers.server === undefined ? '' : ` by '${headers.server}'`;
  if (headers['x-request-id'] !== undefined) return '';
  if (status === 204 || /^application\/(json|proto|grpc)/.test(type)) {
    return server === '' ? '' : `; it was sent${server} and has no X-Request-ID: a proxy in front may have answered`;
  }
  return `; it is ${type}${server} and has no X-Request-ID: a proxy in front answers this itself instead of passing it on`;
}

/** The JSON object in a body. Throws BrokenPromise if there is none. */
export function jsonOf(answer: Answer): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(answer.body.toString());
  } catch {
    throw new BrokenPromise(
      `${answer.status} without a JSON body: ${show(answer.body.toString())}${likelyCause(answer)}`,
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new BrokenPromise(`the body is not a JSON object: ${show(value)}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

/** The object under a name. Throws BrokenPromise if there is none. */
export function objectAt(value: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const found = Object.hasOwn(value, name) ? value[name] : undefined;
  if (typeof found !== 'object' || found === null || Array.isArray(found)) {
    throw new BrokenPromise(`${name} is not an object: ${show(found)}`);
  }
  return found as Readonly<Record<string, unknown>>;
}
