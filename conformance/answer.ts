/** Answers as the kit reads them, and the first look at each: is it JSON, is it the service's own. */
import type { IncomingHttpHeaders } from 'node:http';
import { BrokenPromise } from './outcome.ts';

/** One answer over HTTP, its body read whole. */
export interface Answer {
  readonly status: number;
  /** In lower case. */
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Of gRPC; what an answer without a body has in its headers. */
  readonly trailers: IncomingHttpHeaders;
}

const SHOWN = 160;

/** A value for a message, cut short. */
export function show(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/**
 * Who probably gave an answer that is not the service's, for the end of a message; empty if nothing points
 * to somebody else.
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

/** The JSON object in a body. Throws BrokenPromise. */
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
    throw new BrokenPromise(`the body is no JSON object: ${show(value)}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

/** The object under a name. Throws BrokenPromise. */
export function objectAt(value: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const found = Object.hasOwn(value, name) ? value[name] : undefined;
  if (typeof found !== 'object' || found === null || Array.isArray(found)) {
    throw new BrokenPromise(`${name} is no object: ${show(found)}`);
  }
  return found as Readonly<Record<string, unknown>>;
}
