/** Writes responses that are complete: status, headers and body at once. */
import type { CallFacts } from '../../service/call.ts';
import type { Exchange } from './exchange.ts';
import { isHttp2 } from './messages.ts';
import { hasLargeRest, throwRestAway } from './unwanted.ts';

/** A response; `body` null for none. */
export interface WholeResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
}

/** The headers that say, in every protocol, what stood behind an answer: they are no part of its message. */
export function factHeaders({ learned, languages, unread }: CallFacts): Record<string, string> {
  return {
    ...(learned === undefined ? {} : { 'x-umpire-learned': learned }),
    ...(languages === undefined ? {} : { 'x-umpire-languages': languages.join(', ') }),
    // Only what made the answer less sure: nearly every text has some token that its model does not know.
    ...(unread?.over === true ? { 'x-umpire-unread': unread.share.toFixed(2) } : {}),
  };
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
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  head['content-length'] = length;
  exchange.sent(length);
  response.writeHead(status, head);
  if (request.method === 'HEAD') response.end();
  else response.end(body);
}
