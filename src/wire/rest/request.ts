/** A request of a route: its body, bounded in size and time, and that as a message. */
import type { Message } from '@bufbuild/protobuf';
import { type BodyLimits, BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { bodyTurn, GZIP, readBody, unpack } from '../http/body.ts';
import { MAX_BODY_BYTES, REQUEST_TIMEOUT } from '../http/bounds.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpRequest, isHttp2 } from '../http/messages.ts';
import type { Route } from './routes.ts';

/** Reads the request, after the gate. `variables`: the fields that its path gave. @throws DomainError. */
export async function readRequest(
  exchange: Exchange,
  route: Route,
  variables: ReadonlyMap<string, string>,
  bodies: BodyLimits,
): Promise<Message> {
  if (!route.hasBody) return route.read(undefined, variables);
  const { request } = exchange;
  const packed = isPacked(request);
  assertJsonContent(request);
  const meter = new BodyMeter(bodies, exchange.caller);
  // Over HTTP/1.1 the server's own timeout applies.
  const timeout = isHttp2(request) ? REQUEST_TIMEOUT : undefined;
  const received = await readBody(request, { most: MAX_BODY_BYTES, meter, timeout, late });
  const body = packed ? await unpack(received, meter, notGzip) : received;
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

const late = (): DomainError => new DomainError('REQUEST_TIMEOUT', 'the body did not arrive in time');
const notGzip = (): DomainError =>
  new DomainError('INVALID_JSON', 'the body is not gzip, which its Content-Encoding says it is');

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
