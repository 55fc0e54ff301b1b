/** The bytes of an RPC's request, for Connect to read. */
import { Code, ConnectError } from '@connectrpc/connect';
import type { HttpRequest } from '../http.ts';
import { wasReset } from '../rest/body.ts';

/**
 * Iterates over the body. What a reader leaves unread, because the message is too large or not valid, is then read and thrown away: a stream's
 * own iterator would destroy the request with its connection, or leave it waiting, and the answer would be lost in a reset.
 * Throws ConnectError CANCELED where the caller took the request back.
 */
export async function* requestBody(request: HttpRequest): AsyncGenerator<Uint8Array> {
  try {
    yield* request.iterator({ destroyOnReturn: false });
    if (wasReset(request)) throw new ConnectError('the caller left', Code.Canceled);
  } finally {
    if (!request.readableEnded) request.on('error', () => {}).resume();
  }
}
