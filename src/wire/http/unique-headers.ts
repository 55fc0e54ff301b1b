/**
 * Refuses requests whose meaning depends on who reads them: those that have a header twice, or a version that the
 * connection does not speak. Node shows both headers only in `rawHeaders`. It bounds the size of headers itself over
 * HTTP/1.1, but over HTTP/2 only at four times what was announced.
 */
import { DomainError } from '../../domain/errors.ts';
import { MAX_HEADER_BYTES } from './bounds.ts';
import type { HttpRequest } from './messages.ts';
import { isHttp2 } from './messages.ts';

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
