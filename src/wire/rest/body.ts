/** Reads a request body, bounded in size and time. */
import type { BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { MAX_BODY_BYTES, REQUEST_TIMEOUT } from '../http/bounds.ts';
import { createByteCollector } from '../http/byte-collector.ts';
import { type HttpRequest, isHttp2, wasReset } from '../http/messages.ts';
import { throwRestAway } from '../http/unwanted.ts';

/** The fault of a body beyond the bound. */
export const tooLarge = (): DomainError =>
  new DomainError('BODY_TOO_LARGE', `the body is larger than ${MAX_BODY_BYTES} bytes`);

/**
 * The whole body. `meter` counts its bytes as they arrive.
 *
 * @throws DomainError BODY_TOO_LARGE as soon as that is known, REQUEST_TIMEOUT, CANCELED if the caller leaves, or
 * what `meter` finds.
 */
export function readBody(request: HttpRequest, meter: BodyMeter): Promise<Uint8Array> {
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) > MAX_BODY_BYTES) return Promise.reject(tooLarge());
  const beyond = meter(0);
  if (beyond !== undefined) return Promise.reject(beyond);
  return new Promise((resolve, reject) => {
    const collected = createByteCollector();
    // Over HTTP/1.1 the server's own timeout applies.
    const timer = isHttp2(request)
      ? setTimeout(() => settle(new DomainError('REQUEST_TIMEOUT', 'the body did not arrive in time')), REQUEST_TIMEOUT)
      : undefined;
    const settle = (fault?: DomainError): void => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (fault === undefined) {
        resolve(collected.bytes());
      } else {
        throwRestAway(request);
        reject(fault);
      }
    };
    const onData = (chunk: Buffer): void => {
      if (collected.length + chunk.length > MAX_BODY_BYTES) {
        settle(tooLarge());
        return;
      }
      const tooMany = meter(chunk.length);
      if (tooMany !== undefined) settle(tooMany);
      else collected.add(chunk);
    };
    const onGone = (): void => settle(new DomainError('CANCELED', 'the caller left before its request was complete'));
    const onEnd = (): void => (wasReset(request) ? onGone() : settle());
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}
