/**
 * `Expect: 100-continue` (RFC 9110, 10.1.1): a caller asks whether its body is wanted before it sends it.
 */
import type { HttpRequest, HttpResponse } from './messages.ts';
import { isHttp2 } from './messages.ts';

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
