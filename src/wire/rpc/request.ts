/** A request for an RPC: what its head says, and its body, which Connect gets whole, uncompressed and scanned. */
import { universalRequestFromNodeRequest } from '@connectrpc/connect-node';
import { type BodyLimits, BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { ByteCollector, bodyTurn, MAX_BODY_BYTES, MAX_TIMEOUT } from '../http/byte-collector.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpRequest } from '../http/messages.ts';
import { isPackedWhole, requestBody, unpackedBody } from './body.ts';
import type { UniversalHandler, UniversalServerRequest } from './connect-private.ts';
import { contextOf, takeTimeout } from './context.ts';
import { NoCall, noCall, toConnectError } from './fault.ts';
import type { BodyForm, MessageScan } from './message-scan.ts';
import type { Route } from './routes.ts';

/** A body that is longer than any message with its envelope is passed on unread: Connect refuses it. */
const TOO_LARGE = MAX_BODY_BYTES + 16;

/** Whether a request is a gRPC call by its content type; gRPC-Web is not. */
export function isGrpc({ headers }: HttpRequest): boolean {
  const type = headers['content-type'] ?? '';
  return type.startsWith('application/grpc') && !type.startsWith('application/grpc-web');
}

/**
 * Notes what the call's head says, and counts a call that no limit of callers counts.
 *
 * @throws DomainError METHOD_NOT_ALLOWED or UNSUPPORTED_MEDIA_TYPE for what is no call, RATE_LIMIT_EXCEEDED.
 */
export function receive(exchange: Exchange, { handler, procedure }: Route): void {
  const { request } = exchange;
  exchange.received({ route: handler.requestPath, timeout: takeTimeout(request.headers) });
  const fault = whyNoCall(request, handler);
  if (fault === undefined) exchange.received({ protocol: isGrpc(request) ? 'grpc' : 'connect' });
  if (procedure === undefined || procedure.limits === 'none') exchange.place?.meter();
  if (fault !== undefined) throw fault;
}

/** What Connect would find wrong with a request before it asks for the body; undefined if nothing. */
export function whyNoCall(
  request: HttpRequest,
  { allowedMethods, supportedContentType }: UniversalHandler,
): NoCall | undefined {
  const { method = '', headers } = request;
  const type = headers['content-type'] ?? '';
  if (!allowedMethods.includes(method)) return noCall(405, allowedMethods);
  const known =
    method === 'POST' ? supportedContentType(type) : type === '' || (supportedContentType(type) && !isGrpc(request));
  return known ? undefined : noCall(415);
}

/**
 * The request for Connect, after the gate: its body is read, scanned and counted as Connect asks for it.
 * @throws DomainError MALFORMED_REQUEST.
 */
export function readRequest(exchange: Exchange, { handler, scan }: Route, bodies: BodyLimits): UniversalServerRequest {
  const { request, response } = exchange;
  const form = bodyForm(request);
  if (scan !== undefined && isPackedWhole(form)) {
    // Connect gets the body unpacked, of which these headers are not true.
    delete request.headers['content-encoding'];
    delete request.headers['content-length'];
  }
  // A stream of requests, which only reflection has, may outlast a call's usual time.
  const unary = handler.method.methodKind === 'unary';
  const timeout = unary ? Math.max(0, exchange.deadline - performance.now()) : MAX_TIMEOUT;
  const meter = new BodyMeter(bodies, exchange.caller);
  const body = scannedBody(exchange, requestBody(request, timeout, form.grpc, meter), { scan, form, meter });
  try {
    return universalRequestFromNodeRequest(request, response, body as never, contextOf(exchange));
  } catch (cause) {
    // Such as an authority that is not valid.
    throw new NoCall('MALFORMED_REQUEST', 'the request is not valid HTTP', { cause });
  }
}

/** How a request's headers say that its body is written. */
function bodyForm(request: HttpRequest): BodyForm {
  const { headers } = request;
  const grpc = isGrpc(request);
  const compression = headers[grpc ? 'grpc-encoding' : 'content-encoding'];
  return {
    grpc,
    json: /json/i.test(headers['content-type'] ?? ''),
    compression: typeof compression === 'string' ? compression : undefined,
  };
}

/**
 * The whole body as one uncompressed chunk, once it is scanned; without a scan, the chunks as they come. `meter` counts
 * what compression saved.
 *
 * @throws what reading it throws, a DomainError as Connect's error.
 */
async function* scannedBody(
  exchange: Exchange,
  body: AsyncGenerator<Uint8Array>,
  { scan, form, meter }: { readonly scan: MessageScan | undefined; readonly form: BodyForm; readonly meter: BodyMeter },
): AsyncGenerator<Uint8Array> {
  const collected = new ByteCollector();
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
    // Two turns: one for the scan, one for what Connect makes of the body.
    const turn = bodyTurn(bytes.length);
    if (turn !== undefined) await turn;
    scan.all(bytes, form);
    if (turn !== undefined) await bodyTurn(bytes.length);
    yield bytes;
  } catch (error) {
    throw error instanceof DomainError ? toConnectError(exchange.failed(error)) : error;
  } finally {
    await body.return(undefined);
  }
}
