/** Node's requests and responses as the wire uses them, HTTP/1.1 and HTTP/2 alike. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** HTTP/2 requests come as Node's compatibility class, which has all of these members. */
export type HttpRequest = IncomingMessage;
/** Likewise. Connection headers must not be set on an HTTP/2 response. */
export type HttpResponse = ServerResponse;

/** Whether the request came over HTTP/2. */
export function isHttp2(request: HttpRequest): boolean {
  return request.httpVersionMajor === 2;
}

/** The path of a request without its query: of an absolute-form target, the part behind the authority. */
export function pathOf(request: HttpRequest): string {
  let target = request.url ?? '';
  if (!target.startsWith('/')) {
    const authority = target.indexOf('://');
    const slash = authority === -1 ? -1 : target.indexOf('/', authority + 3);
    target = slash === -1 ? target : target.slice(slash);
  }
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}
