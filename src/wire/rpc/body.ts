/** The bytes of a stream of requests, for Connect to read as they come. */
import type { BodyMeter } from '../../domain/body-limits.ts';
import { callerLeft, unreadInTime } from '../../domain/call.ts';
import type { DomainError } from '../../domain/errors.ts';
import { throwRestAway } from '../http/body.ts';
import { MAX_TIMEOUT } from '../http/bounds.ts';
import type { Exchange } from '../http/exchange.ts';
import { wasReset } from '../http/messages.ts';
import { toConnectError, undecodable } from './fault.ts';

/**
 * Iterates over the body. What a reader leaves unread, because a message is too large or not valid, is then read and
 * discarded: a stream's own iterator would destroy the request with its connection, or leave it waiting, and the answer
 * would be lost in a reset.
 *
 * @param grpc whether it holds gRPC's messages, whose flags Connect would read as those of its own protocol.
 * @param meter counts its bytes as they arrive.
 * @throws ConnectError of DEADLINE_EXCEEDED if it lasts longer than any call, for which Connect would wait, of CANCELED
 * if the caller leaves, of INVALID_MESSAGE for flags that gRPC does not have, and of what `meter` finds.
 */
export async function* streamedBody(exchange: Exchange, grpc: boolean, meter: BodyMeter): AsyncGenerator<Uint8Array> {
  const { request } = exchange;
  const flags = grpc ? createFlagCheck() : undefined;
  const chunks: Uint8Array[] = [];
  let state: 'open' | 'ended' | DomainError = 'open';
  let wake = (): void => {};
  const become = (next: 'ended' | DomainError): void => {
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
  const onGone = (): void => become(callerLeft());
  const onEnd = (): void => (wasReset(request) ? onGone() : become('ended'));
  const timer = setTimeout(() => become(unreadInTime()), MAX_TIMEOUT);
  request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  if (exchange.departed) onGone();
  try {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk !== undefined) {
        if (flags?.(chunk) === false) throw undecodable();
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
  } catch (error) {
    throw toConnectError(exchange.failed(error));
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
