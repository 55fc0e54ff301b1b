/**
 * Node's requests and responses as the wire uses them, HTTP/1.1 and HTTP/2 alike; and what is refused before any
 * protocol looks at a request.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/errors.ts';
import { MAX_HEADER_BYTES } from './bounds.ts';

/** HTTP/2 requests come as Node's compatibility class, which has all of these members. */
export type HttpRequest = IncomingMessage;
/** HTTP/2 responses come so, too. Connection headers must not be set on them. */
export type HttpResponse = ServerResponse;

/** Whether the request came over HTTP/2. Its `httpVersion` does not tell: over HTTP/1.1 a request can claim any. */
export function isHttp2(request: HttpRequest): boolean {
  return 'stream' in request;
}

/** Whether the caller took the request back: an HTTP/2 body then ends as if it were whole. */
export function wasReset(request: HttpRequest): boolean {
  return isHttp2(request) && request.aborted;
}

/** Whether a request is a gRPC call by its content type; gRPC-Web is not. */
export function isGrpc({ headers }: HttpRequest): boolean {
  const type = headers['content-type'] ?? '';
  return type.startsWith('application/grpc') && !type.startsWith('application/grpc-web');
}

/** The path of a request without its query: of an absolute-form target, the part after the authority. */
export function pathOf(request: HttpRequest): string {
  const target = request.url ?? '';
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  if (path.startsWith('/')) return path;
  const authority = path.indexOf('://');
  const slash = authority === -1 ? -1 : path.indexOf('/', authority + 3);
  return slash === -1 ? path : path.slice(slash);
}

// `Expect: 100-continue` (RFC 9110, 10.1.1): a caller asks whether its body is wanted before it sends it.

/** Whether the header names `100-continue` alone; a header that comes twice is joined into a list. */
export function isContinue(expect: string): boolean {
  return (
    expect === '100-continue' || expect.split(',').every((member) => member.trim().toLowerCase() === '100-continue')
  );
}

/**
 * Tells the caller to go on. Does nothing for a caller that is gone: Node's own function throws where the stream has
 * been reset in the meantime.
 */
export function sendContinue(request: HttpRequest, response: HttpResponse): void {
  if (isHttp2(request)) {
    const { stream } = request as unknown as { stream: { destroyed: boolean; closed: boolean } };
    if (stream.destroyed || stream.closed) return;
  }
  // HTTP/1.0 has no interim responses.
  if (request.httpVersion !== '1.0') response.writeContinue();
}

// Refuses requests whose meaning depends on who reads them: those that have a header twice, or a version that the
// connection does not speak. Node shows both headers only in `rawHeaders`. It bounds the size of headers itself over
// HTTP/1.1, but over HTTP/2 only at four times what was announced.

/** What HTTP/2 counts for each header in addition to its name and value (RFC 9113, 6.5.2). */
const HEADER_OVERHEAD = 32;

/**
 * @throws DomainError AUTHENTICATION_REQUIRED for two `Authorization` headers; MALFORMED_REQUEST for two `Host` or
 * `Content-Type` headers, none in HTTP/1.1, or another HTTP/1 version; HEADERS_TOO_LARGE.
 */
export function assertUniqueHeaders(request: HttpRequest): void {
  const { rawHeaders, httpVersion } = request;
  const http2 = isHttp2(request);
  if (!http2 && httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new DomainError('MALFORMED_REQUEST', 'this connection speaks HTTP/1.1');
  }
  let hosts = 0;
  let authorizations = 0;
  let types = 0;
  let size = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    // Lengths are compared first, so that few names have to be converted to lower case.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    else if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations += 1;
    else if (name.length === 12 && name.toLowerCase() === 'content-type') types += 1;
    if (http2) size += name.length + (rawHeaders[index + 1] as string).length + HEADER_OVERHEAD;
  }
  if (size > MAX_HEADER_BYTES) throw new DomainError('HEADERS_TOO_LARGE', 'the headers are larger than 16 KiB');
  if (hosts > 1) throw new DomainError('MALFORMED_REQUEST', 'more than one Host header');
  if (types > 1) throw new DomainError('MALFORMED_REQUEST', 'more than one Content-Type header');
  if (authorizations > 1) {
    throw new DomainError('AUTHENTICATION_REQUIRED', 'more than one Authorization header; send one, Bearer <API_KEY>');
  }
  if (hosts === 0 && !http2 && httpVersion === '1.1') {
    throw new DomainError('MALFORMED_REQUEST', 'an HTTP/1.1 request needs a Host header');
  }
}
