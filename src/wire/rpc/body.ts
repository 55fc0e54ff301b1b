/** The bytes of an RPC's request, for Connect to read. */
import { Code, ConnectError } from '@connectrpc/connect';
import type { BodyMeter } from '../../domain/body-limits.ts';
import type { DomainError } from '../../domain/errors.ts';
import { GZIP, unpack } from '../http/gunzip.ts';
import { type HttpRequest, wasReset } from '../http/messages.ts';
import { throwRestAway } from '../http/unwanted.ts';
import { type BodyForm, ENVELOPE, enveloped } from './message-scan.ts';

/**
 * Iterates over the body. What a reader leaves unread, because the message is too large or not valid, is then read and
 * discarded: a stream's own iterator would destroy the request with its connection, or leave it waiting, and the answer
 * would be lost in a reset.
 *
 * @param timeout milliseconds until the whole body must be there: Connect would wait for it past the call's deadline.
 * @param grpc whether it holds gRPC's messages, whose flags Connect would read as those of its own protocol.
 * @param meter counts its bytes as they arrive.
 * @throws ConnectError DEADLINE_EXCEEDED if it is late, CANCELED if the caller leaves, INVALID_ARGUMENT for a message
 * with flags that gRPC does not have, and what `meter` finds.
 */
export async function* requestBody(
  request: HttpRequest,
  timeout: number,
  grpc: boolean,
  meter: BodyMeter,
): AsyncGenerator<Uint8Array> {
  const flags = grpc ? createFlagCheck() : undefined;
  const chunks: Uint8Array[] = [];
  let state: 'open' | 'ended' | ConnectError | DomainError = 'open';
  let wake = (): void => {};
  const become = (next: 'ended' | ConnectError | DomainError): void => {
    if (state === 'open') state = next;
    wake();
  };
  const onData = (chunk: Uint8Array): void => {
    const tooMany = meter.count(chunk.length);
    if (tooMany === undefined) chunks.push(chunk);
    else become(tooMany);
    // A paused request leaves what nobody asks for with the sender.
    request.pause();
    wake();
  };
  const onGone = (): void => become(new ConnectError('the caller left', Code.Canceled));
  const onEnd = (): void => (wasReset(request) ? onGone() : become('ended'));
  const timer = setTimeout(() => become(new ConnectError('the body is late', Code.DeadlineExceeded)), timeout);
  request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  try {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk !== undefined) {
        if (flags?.(chunk) === false) throw new ConnectError('unknown flags of a message', Code.InvalidArgument);
        yield chunk;
        continue;
      }
      if (state !== 'open') break;
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      request.resume();
      await woken;
    }
    if (state !== 'ended') throw state;
  } finally {
    clearTimeout(timer);
    request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
    throwRestAway(request);
  }
}

/** Bytes before each message: its flags and its length. */
const PREFIX = 5;

/** Checks the flags of each message as its chunks pass; returns false for any but 0 and 1 (compressed). */
function createFlagCheck(): (chunk: Uint8Array) => boolean {
  let message = 0;
  let prefix = 0;
  let length = 0;
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      if (message > 0) {
        const step = Math.min(message, chunk.length - at);
        message -= step;
        at += step;
        continue;
      }
      const byte = chunk[at] as number;
      at += 1;
      if (prefix === 0 && byte > 1) return false;
      length = prefix === 0 ? 0 : length * 256 + byte;
      prefix += 1;
      if (prefix < PREFIX) continue;
      prefix = 0;
      message = length;
    }
    return true;
  };
}

// A unary request's body without compression: it is scanned like any other, and Connect gets it uncompressed.

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
