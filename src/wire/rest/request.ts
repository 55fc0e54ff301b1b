/** A request of a route: its body, bounded in size and time, and that as a message. */
import type { Message } from '@bufbuild/protobuf';
import { type BodyLimits, BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { ByteCollector, bodyTurn, MAX_BODY_BYTES, REQUEST_TIMEOUT } from '../http/byte-collector.ts';
import type { Exchange } from '../http/exchange.ts';
import { GZIP, unpack } from '../http/gunzip.ts';
import { type HttpRequest, isHttp2, wasReset } from '../http/messages.ts';
import { throwRestAway } from '../http/unwanted.ts';
import type { Route } from './routes.ts';

/** Reads the request, after the gate. `variables`: the fields that its path gave. @throws DomainError. */
export async function readRequest(
  exchange: Exchange,
  route: Route,
  variables: ReadonlyMap<string, string>,
  bodies: BodyLimits,
): Promise<Message> {
  if (!route.hasBody) return route.read(undefined, variables);
  const packed = isPacked(exchange.request);
  assertJsonContent(exchange.request);
  const meter = new BodyMeter(bodies, exchange.caller);
  const received = await readBody(exchange.request, meter);
  const body = packed ? await unpackedBody(received, meter) : received;
  const turn = bodyTurn(body.length);
  if (turn !== undefined) await turn;
  return route.read(body, variables);
}

/** Whether the body is compressed. @throws DomainError UNSUPPORTED_ENCODING for another coding than gzip. */
function isPacked({ headers }: HttpRequest): boolean {
  const coding = headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (coding === GZIP) return true;
  if (coding === 'identity') return false;
  throw new DomainError('UNSUPPORTED_ENCODING', 'request bodies are sent as they are, or as Content-Encoding: gzip');
}

async function unpackedBody(body: Uint8Array, meter: BodyMeter): Promise<Uint8Array> {
  const found = await unpack(body, meter);
  if (found.kind === 'plain') return found.bytes;
  if (found.kind === 'too_large') throw tooLarge();
  throw found.kind === 'refused'
    ? found.fault
    : new DomainError('INVALID_JSON', 'the body is not gzip, which its Content-Encoding says it is');
}

/** @throws DomainError UNSUPPORTED_MEDIA_TYPE if the headers do not announce JSON in UTF-8. */
function assertJsonContent(request: HttpRequest): void {
  const type = request.headers['content-type'];
  if (type === 'application/json') return;
  const [media = '', ...parameters] = (type ?? '').split(';');
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/i.exec(parameter)?.[1])
    .find((value) => value !== undefined);
  if (
    media.trim().toLowerCase() !== 'application/json' ||
    (charset !== undefined && charset.toLowerCase() !== 'utf-8')
  ) {
    throw new DomainError('UNSUPPORTED_MEDIA_TYPE', 'send the body as Content-Type: application/json, in UTF-8');
  }
}

/** The fault of a body beyond the bound. */
const tooLarge = (): DomainError =>
  new DomainError('BODY_TOO_LARGE', `the body is larger than ${MAX_BODY_BYTES} bytes`);

/**
 * The whole body. `meter` counts its bytes as they arrive.
 *
 * @throws DomainError BODY_TOO_LARGE as soon as that is known, REQUEST_TIMEOUT, CANCELED if the caller leaves, or
 * what `meter` finds.
 */
function readBody(request: HttpRequest, meter: BodyMeter): Promise<Uint8Array> {
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) > MAX_BODY_BYTES) return Promise.reject(tooLarge());
  const beyond = meter.count(0);
  if (beyond !== undefined) return Promise.reject(beyond);
  return new Promise((resolve, reject) => {
    const collected = new ByteCollector();
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
      const tooMany = meter.count(chunk.length);
      if (tooMany !== undefined) settle(tooMany);
      else collected.add(chunk);
    };
    const onGone = (): void => settle(new DomainError('CANCELED', 'the caller left before its request was complete'));
    const onEnd = (): void => (wasReset(request) ? onGone() : settle());
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}
