/** A request for an RPC: what its head says, and its body, which Connect gets whole, uncompressed and scanned. */
import { type BodyLimits, BodyMeter } from '../../domain/body-limits.ts';
import { unreadInTime } from '../../domain/call.ts';
import { bodyTurn, GZIP, readBody } from '../http/body.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpRequest, isGrpc } from '../http/messages.ts';
import { HttpFault } from '../http/response.ts';
import { streamedBody } from './body.ts';
import type { UniversalHandler, UniversalServerRequest } from './connect-private.ts';
import { contextOf, takeTimeout } from './context.ts';
import { noCall } from './fault.ts';
import { type BodyForm, ENVELOPE, enveloped, unpackedBody } from './message-scan.ts';
import type { Route } from './routes.ts';

const NO_BODY = new Uint8Array();

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
): HttpFault | undefined {
  const { method = '', headers } = request;
  const type = headers['content-type'] ?? '';
  if (!allowedMethods.includes(method)) return noCall(405, allowedMethods);
  const known =
    method === 'POST' ? supportedContentType(type) : type === '' || (supportedContentType(type) && !isGrpc(request));
  return known ? undefined : noCall(415);
}

/** What Connect reads of a request's headers. To convert the others for it takes longer than to decode a message. */
const CONNECT_HEADERS = [
  'content-type',
  'content-encoding',
  'accept-encoding',
  'connect-content-encoding',
  'connect-accept-encoding',
  'connect-timeout-ms',
  'grpc-encoding',
  'grpc-accept-encoding',
  'grpc-timeout',
];

/**
 * The request for Connect, after the gate. A stream is read and counted as Connect asks for it; any other body comes
 * whole, uncompressed and scanned.
 * @throws DomainError MALFORMED_REQUEST, and what the body is refused for.
 */
export async function readRequest(
  exchange: Exchange,
  route: Route,
  bodies: BodyLimits,
): Promise<UniversalServerRequest> {
  const { request } = exchange;
  const { httpVersion, method = '', headers } = request;
  const url = URL.parse(request.url ?? '', `http://${headers[':authority'] ?? headers.host ?? ''}`);
  if (url === null) throw new HttpFault('MALFORMED_REQUEST', 'the request is not valid HTTP');
  const header = new Headers();
  for (const name of CONNECT_HEADERS) {
    const value = headers[name];
    if (typeof value === 'string') header.set(name, value);
  }
  const form = bodyForm(request);
  // Connect gets the body unpacked.
  if (route.scan !== undefined && !form.grpc && form.compression === GZIP) header.delete('content-encoding');
  const meter = new BodyMeter(bodies, exchange.caller);
  const body =
    route.handler.method.methodKind === 'bidi_streaming'
      ? streamedBody(exchange, form.grpc, meter)
      : alone(await readWhole(exchange, route, form, meter));
  return {
    httpVersion,
    method,
    url: url.href,
    header,
    body,
    signal: exchange.signal,
    contextValues: contextOf(exchange),
  };
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

async function* alone(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

async function readWhole(
  { request, deadline }: Exchange,
  { scan, most }: Route,
  form: BodyForm,
  meter: BodyMeter,
): Promise<Uint8Array> {
  const { compression = 'identity', grpc } = form;
  // Connect refuses other compressions, and reads no body of a GET.
  if (request.method === 'GET' || (compression !== GZIP && compression !== 'identity')) return NO_BODY;
  const timeout = Math.max(0, deadline - performance.now());
  const received = await readBody(request, { most: most + ENVELOPE, meter, timeout, late: unreadInTime });
  if (scan === undefined) {
    if (grpc) enveloped(received);
    return received;
  }
  const bytes = await unpackedBody(received, form, meter);
  // Two turns: one for the scan, one for what Connect makes of the body.
  const turn = bodyTurn(bytes.length);
  if (turn !== undefined) await turn;
  scan.all(bytes, form);
  if (turn !== undefined) await bodyTurn(bytes.length);
  return bytes;
}
