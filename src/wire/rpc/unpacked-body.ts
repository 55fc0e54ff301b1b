/** A unary request's body without compression: it is scanned like any other, and Connect gets it uncompressed. */
import { Code, ConnectError } from '@connectrpc/connect';
import type { BodyMeter } from '../../domain/body-limits.ts';
import { GZIP, unpack } from '../http/gunzip.ts';
import { type BodyForm, ENVELOPE, enveloped } from './message-scan.ts';

/** Whether a body is compressed as a whole. Its headers are then not true of what it is unpacked to. */
export function isPackedWhole({ grpc, compression }: BodyForm): boolean {
  return !grpc && compression === GZIP;
}

/**
 * The body without compression; as it is if there is none, or one that Connect refuses. `meter` counts the bytes that
 * compression had saved.
 *
 * @throws ConnectError RESOURCE_EXHAUSTED if a message becomes larger than a body may be, INVALID_ARGUMENT if it is
 * broken, and what `meter` finds.
 */
export async function unpackedBody(body: Uint8Array, form: BodyForm, meter: BodyMeter): Promise<Uint8Array> {
  if (form.compression !== GZIP) return body;
  if (!form.grpc) return await unpacked(body, meter);
  const messages = enveloped(body);
  if (!messages.some(({ compressed }) => compressed)) return body;
  const parts: Uint8Array[] = [];
  let taken = 0;
  for (const { message, compressed } of messages) {
    const plain = compressed ? await unpacked(message, meter) : message;
    const envelope = Buffer.alloc(ENVELOPE);
    envelope.writeUInt32BE(plain.length, 1);
    parts.push(envelope, plain);
    taken += ENVELOPE + message.length;
  }
  return Buffer.concat([...parts, body.subarray(taken)]);
}

async function unpacked(bytes: Uint8Array, meter: BodyMeter): Promise<Uint8Array> {
  // Connect reads a compressed message without any bytes like this, too.
  if (bytes.length === 0) return bytes;
  const found = await unpack(bytes, meter);
  switch (found.kind) {
    case 'plain':
      return found.bytes;
    case 'refused':
      throw found.fault;
    case 'too_large':
      throw new ConnectError('the message is larger than 1 MiB', Code.ResourceExhausted);
    case 'broken':
      throw new ConnectError('the message is not gzip', Code.InvalidArgument);
  }
}
