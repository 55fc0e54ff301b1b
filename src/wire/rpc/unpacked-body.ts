/**
 * Decompresses a unary request's body once, before anything reads it: so a compressed body is bounded and counted by
 * what it becomes and scanned like any other, and Connect gets it uncompressed.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Code, ConnectError } from '@connectrpc/connect';
import type { BodyMeter } from '../../domain/body-limits.ts';
import { MAX_BODY_BYTES } from '../http/bounds.ts';
import { type BodyForm, ENVELOPE, enveloped } from './message-scan.ts';

/** The one compression that is supported. */
const GZIP = 'gzip';

/** Bytes that one byte of DEFLATE can become: the longest match, 258 bytes, takes two bits. */
const MOST_RATIO = 1032;

const unzip = promisify(gunzip);

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
  let plain: Uint8Array | undefined;
  let fault: ConnectError | undefined;
  try {
    plain = await unzip(bytes, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    fault =
      (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
        ? new ConnectError('the message is larger than 1 MiB', Code.ResourceExhausted)
        : new ConnectError('the message is not gzip', Code.InvalidArgument);
  }
  // A body that is refused has been unpacked in part, and zlib does not say how far: the most that is possible counts.
  const became = plain?.length ?? Math.min(MAX_BODY_BYTES, MOST_RATIO * bytes.length);
  const tooMany = meter(Math.max(0, became - bytes.length));
  if (fault !== undefined || tooMany !== undefined) throw fault ?? tooMany;
  return plain as Uint8Array;
}
