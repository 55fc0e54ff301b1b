/** Writes responses that are complete: status, headers and body at once. */
import type { Exchange } from './exchange.ts';
import { isHttp2 } from './messages.ts';
import { hasLargeRest, throwRestAway } from './unwanted.ts';

/** A response; `body` null for none. */
export interface WholeResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
}

/** Sends a response, with the headers that every response has. Does nothing if the caller is gone. */
export function respond(exchange: Exchange, { status, headers, body }: WholeResponse, closing: boolean): void {
  const { request, response } = exchange;
  if (response.writableEnded || response.destroyed || response.headersSent) return;
  // Over HTTP/2, flow control keeps what nobody reads with the sender.
  if (!isHttp2(request) && !request.complete) throwRestAway(request);
  const head: Record<string, string | number> = { 'x-request-id': exchange.requestId, ...headers };
  if (!isHttp2(request) && (closing || hasLargeRest(request))) head.connection = 'close';
  if (body === null) {
    response.writeHead(status, head);
    response.end();
    return;
  }
  head['content-type'] = 'application/json';
  head['content-length'] = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  response.writeHead(status, head);
  if (request.method === 'HEAD') response.end();
  else response.end(body);
}
