/** A unary request's body, scanned before Connect sees any of it. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createByteCollector } from '../byte-collector.ts';
import type { HttpRequest } from '../http.ts';
import { MAX_BODY_BYTES } from '../rest/body.ts';
import { isGrpc } from './grpc-fault.ts';
import { type BodyForm, type MessageScan, scanMessages } from './message-scan.ts';

/** From here on the work on a body is done in two turns: scanning, and what Connect makes of it. */
const LARGE = 64 * 1024;
/** A body that is longer than any message with its envelope is passed on unread: Connect refuses it. */
const TOO_LARGE = MAX_BODY_BYTES + 16;

/** How a request says that its body is written. */
export function bodyForm(request: HttpRequest): BodyForm {
  const { headers } = request;
  const grpc = isGrpc(request);
  const compression = headers[grpc ? 'grpc-encoding' : 'content-encoding'];
  return {
    grpc,
    json: /json/i.test(headers['content-type'] ?? ''),
    compression: typeof compression === 'string' ? compression.trim().toLowerCase() : undefined,
  };
}

/** The whole body as one chunk, once it is scanned. @throws what `body` throws, and DomainError for what the scan finds. */
export async function* scannedBody(
  body: AsyncGenerator<Uint8Array>,
  scan: MessageScan,
  form: BodyForm,
): AsyncGenerator<Uint8Array> {
  const collected = createByteCollector();
  try {
    for (;;) {
      const { value, done } = await body.next();
      if (done === true) break;
      collected.add(value);
      if (collected.length <= TOO_LARGE) continue;
      yield collected.bytes();
      yield* body;
      return;
    }
    const bytes = collected.bytes();
    await scanMessages(scan, bytes, form);
    if (bytes.length > LARGE) await nextTurn();
    if (bytes.length > 0) yield bytes;
  } finally {
    await body.return(undefined);
  }
}
