/** Node's requests and responses as the wire uses them, HTTP/1.1 and HTTP/2 alike. */
import type { IncomingMessage, ServerResponse } from 'node:http';

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
