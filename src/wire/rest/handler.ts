/** The REST facade: a protocol beside gRPC and Connect, in front of the same procedures. */
import type { BodyLimits } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Gate } from '../call/gate.ts';
import { invoke } from '../call/invoke.ts';
import type { Health } from '../health.ts';
import { bodyTurn } from '../http/body-turns.ts';
import type { Exchange } from '../http/exchange.ts';
import { respondFault } from '../http/fault.ts';
import { respond } from '../http/response.ts';
import { assertJsonContent, readBody } from './body.ts';
import { createPages } from './pages.ts';
import { createRouter } from './router.ts';
import { createRoutes, type Route } from './routes.ts';
import { serverTiming } from './server-timing.ts';

/** Answers a request whose path is not an RPC's. Never rejects. */
export type RestHandler = (exchange: Exchange, path: string) => Promise<void>;

/** A handler over procedures. @throws Error if an annotation cannot be served. */
export function createRestHandler(options: {
  readonly procedures: readonly Procedure[];
  readonly gate: Gate;
  readonly health: Health;
  readonly bodies: BodyLimits;
}): RestHandler {
  const { gate, health, bodies } = options;
  const route = createRouter(createRoutes(options.procedures));
  const pages = createPages();

  const serve = async (exchange: Exchange, found: Route, variables: ReadonlyMap<string, string>) => {
    const { procedure, hasBody } = found;
    exchange.received({ route: found.template.text });
    if (procedure.limits === 'none') exchange.place?.meter();
    await gate(exchange, procedure);
    if (hasBody) assertJsonContent(exchange.request);
    const body = hasBody ? await readBody(exchange.request, bodies.meter(exchange.caller)) : undefined;
    const turn = bodyTurn(body?.length ?? 0);
    if (turn !== undefined) await turn;
    const result = await invoke(procedure, found.read(body, variables), exchange);
    const headers: Record<string, string> = {};
    const location = found.location(result);
    if (location !== undefined) headers.location = location;
    const { timings } = exchange.facts;
    if (timings !== undefined && exchange.caller.kind === 'key') headers['server-timing'] = serverTiming(timings);
    const { learned } = exchange.facts;
    if (learned !== undefined) headers['x-umpire-learned'] = learned;
    respond(exchange, { status: found.successStatus, headers, body: found.write(result) }, health.draining);
  };

  const serveHealth = (exchange: Exchange, path: string): boolean => {
    const state = health.probe(path);
    if (state === undefined) return false;
    assertRead(exchange, path);
    if (state.fault !== undefined) throw state.fault;
    respond(exchange, { status: 200, body: state.body }, health.draining);
    return true;
  };

  const servePage = (exchange: Exchange, path: string): boolean => {
    const body = pages.get(path);
    if (body === undefined) return false;
    assertRead(exchange, path);
    respond(exchange, { status: 200, body }, health.draining);
    return true;
  };

  return async (exchange, path) => {
    let allow = 'GET, HEAD';
    try {
      if (serveHealth(exchange, path) || servePage(exchange, path)) return;
      const match = route(exchange.request.method ?? '', path);
      if (match.kind === 'route') {
        await serve(exchange, match.route, match.variables);
        return;
      }
      if (match.kind === 'not_found') {
        throw new DomainError('ROUTE_NOT_FOUND', 'no resource has this path; GET / says where they are');
      }
      allow = match.allow;
      throw methodNotAllowed();
    } catch (error) {
      const fault = exchange.failed(error);
      respondFault(exchange, fault, health.draining, fault.reason === 'METHOD_NOT_ALLOWED' ? { allow } : {});
    }
  };
}

/** Notes the path as the route. @throws DomainError METHOD_NOT_ALLOWED for anything but GET and HEAD. */
function assertRead(exchange: Exchange, path: string): void {
  exchange.received({ route: path });
  const { method } = exchange.request;
  if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed();
}

function methodNotAllowed(): DomainError {
  return new DomainError('METHOD_NOT_ALLOWED', 'this resource does not have that method; see the Allow header');
}
