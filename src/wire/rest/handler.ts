/** REST: a protocol beside gRPC and Connect, in front of the same procedures. */
import type { Message } from '@bufbuild/protobuf';
import { type BodyLimits, BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Gate } from '../../domain/gate.ts';
import type { ModelRevision } from '../../engine/engine.ts';
import type { Procedure } from '../../service/procedure.ts';
import { type Health, probe } from '../health.ts';
import { bodyTurn, GZIP, readBody, unpack } from '../http/body.ts';
import { MAX_BODY_BYTES, REQUEST_TIMEOUT } from '../http/bounds.ts';
import type { Exchange, ProtocolHandler } from '../http/exchange.ts';
import { type HttpRequest, isHttp2 } from '../http/messages.ts';
import { factHeaders, HttpFault, respond, respondFault, type WholeResponse } from '../http/response.ts';
import { createPages, type Pages } from './pages.ts';
import { createRoutes, type Route, Router } from './routes.ts';

/** What REST is served from. */
export interface RestOptions {
  readonly procedures: readonly Procedure[];
  readonly gate: Gate;
  readonly health: Health;
  readonly bodies: BodyLimits;
  readonly models: () => readonly ModelRevision[];
}

/** The handler of REST. */
export class RestHandler implements ProtocolHandler {
  readonly #options: RestOptions;
  readonly #router: Router;
  readonly #pages: Pages;

  /** @throws Error if an annotation cannot be served. */
  constructor(options: RestOptions) {
    this.#options = options;
    this.#router = new Router(createRoutes(options.procedures));
    this.#pages = createPages(options.models);
  }

  async handle(exchange: Exchange, path: string): Promise<void> {
    const { health } = this.#options;
    try {
      const body = this.#page(exchange, path);
      const answer = body === undefined ? await this.#call(exchange, path) : { status: 200, body };
      respond(exchange, answer, health.draining);
    } catch (error) {
      this.refuse(exchange, exchange.failed(error), health.draining);
    }
  }

  refuse(exchange: Exchange, fault: DomainError, closing: boolean): void {
    respondFault(exchange, exchange.failed(fault), closing || this.#options.health.draining);
  }

  /** The body of a page or a probe; undefined where there is none. @throws DomainError if it cannot be had. */
  #page(exchange: Exchange, path: string): string | undefined {
    const page = this.#pages.get(path);
    const found = page === undefined ? probe(this.#options.health, path) : { body: page(), fault: undefined };
    if (found === undefined) return undefined;
    const { method = '' } = exchange.request;
    const isRead = method === 'GET' || method === 'HEAD';
    if (page !== undefined || !isRead) exchange.place?.meter();
    exchange.received({ route: path });
    if (!isRead) throw methodNotAllowed('GET, HEAD');
    if (found.fault !== undefined) throw found.fault;
    return found.body;
  }

  /** Calls the procedure of a path. */
  async #call(exchange: Exchange, path: string): Promise<WholeResponse> {
    const found = this.#router.find(exchange.request.method ?? '', path);
    if (found.kind !== 'route') {
      exchange.place?.meter();
      if (found.kind === 'method_not_allowed') throw methodNotAllowed(found.allow);
      throw new DomainError('ROUTE_NOT_FOUND', `no resource has this path; ${found.hint}GET / says where they are`);
    }
    const { route, variables } = found;
    const { procedure } = route;
    const { gate, bodies } = this.#options;
    exchange.received({ route: route.template.text });
    if (procedure.limits === 'none') exchange.place?.meter();
    await gate.admit(exchange, exchange.origin, procedure);
    const request = await readRequest(exchange, route, variables, bodies);
    return responseOf(exchange, route, await exchange.invoke(procedure, request));
  }
}

const methodNotAllowed = (allow: string): HttpFault =>
  new HttpFault('METHOD_NOT_ALLOWED', `this resource has only ${allow}`, { allow });

/** Reads the request, after the gate. `variables`: the fields that its path gave. @throws DomainError. */
async function readRequest(
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

/** The response with the message that the procedure returned. */
function responseOf({ facts, caller }: Exchange, route: Route, message: object): WholeResponse {
  const headers = factHeaders(facts);
  const location = route.location(message);
  if (location !== undefined) headers.location = location;
  // The times of stages reveal what engines have in their caches and what they do for others. The holder of a key can
  // be held to account for what it finds out.
  if (facts.timings !== undefined && caller.kind === 'key') headers['server-timing'] = serverTiming(facts.timings);
  return { status: route.successStatus, headers, body: route.write(message) };
}

/** The header's value (W3C): `{queue: 0.1, infer: 5.25}` becomes `queue;dur=0.10, infer;dur=5.25`; milliseconds. */
function serverTiming(timings: Readonly<Record<string, number>>): string {
  return Object.entries(timings)
    .map(([stage, duration]) => `${stage};dur=${duration.toFixed(2)}`)
    .join(', ');
}
