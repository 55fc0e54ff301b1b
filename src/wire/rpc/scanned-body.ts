/** A unary request's body, scanned before Connect sees any of it. */
import type { BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { bodyTurn } from '../http/body-turns.ts';
import { MAX_BODY_BYTES } from '../http/bounds.ts';
import { createByteCollector } from '../http/byte-collector.ts';
import type { HttpRequest } from '../http/messages.ts';
import { isGrpc } from './grpc-fault.ts';
import { type BodyForm, type MessageScan, scanMessages } from './message-scan.ts';
import { unpackedBody } from './unpacked-body.ts';

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
    compression: typeof compression === 'string' ? compression : undefined,
  };
}

/** What a body is read with. */
export interface ScannedBodyOptions {
  /** Begins to read it. */
  open(): AsyncGenerator<Uint8Array>;
  /** Counts bytes that it has beside those which arrived: what its compression saved. */
  readonly meter: BodyMeter;
  /** Undefined for a body that is passed on as it comes. */
  readonly scan: MessageScan | undefined;
  readonly form: BodyForm;
  /** What is thrown for a fault. */
  visible(fault: DomainError): Error;
}

/** The whole body as one chunk, without compression, once it is scanned. @throws what reading it throws; of a DomainError, what `visible` makes of it. */
export async function* scannedBody({
  open,
  meter,
  scan,
  form,
  visible,
}: ScannedBodyOptions): AsyncGenerator<Uint8Array> {
  const body = open();
  const collected = createByteCollector();
  let passing = scan === undefined;
  try {
    for (;;) {
      const { value, done } = await body.next();
      if (done === true) break;
      if (passing) {
        yield value;
        continue;
      }
      collected.add(value);
      passing = collected.length > TOO_LARGE;
      if (passing) yield collected.bytes();
    }
    if (passing || scan === undefined || collected.length === 0) return;
    const bytes = await unpackedBody(collected.bytes(), form, meter);
    // Two turns: scanning, and what Connect makes of it.
    const turn = bodyTurn(bytes.length);
    if (turn !== undefined) await turn;
    scanMessages(scan, bytes, form);
    if (turn !== undefined) await bodyTurn(bytes.length);
    yield bytes;
  } catch (error) {
    throw error instanceof DomainError ? visible(error) : error;
  } finally {
    await body.return(undefined);
  }
}
