/** REST: a protocol beside gRPC and Connect, in front of the same procedures. */
import type { BodyLimits } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Gate } from '../../domain/gate.ts';
import type { ModelRevision } from '../../engine/engine.ts';
import type { Procedure } from '../../service/procedure.ts';
import { invoke } from '../call.ts';
import { type Health, type Probe, probe } from '../health.ts';
import type { Exchange, ProtocolHandler } from '../http/exchange.ts';
import { factHeaders, respond, respondFault, type WholeResponse } from '../http/response.ts';
import { createPages } from './pages.ts';
import { readRequest } from './request.ts';
import { createRoutes, type Match, type Route, Router } from './routes.ts';

/** What a path leads to: what the router found, or a page. The probes of health are pages here. */
type Found = Match | { readonly kind: 'page'; readonly page: Pick<Probe, 'fault'> & { readonly body: string } };

/** A handler over procedures. @throws Error if an annotation cannot be served. */
export function createRestHandler(options: {
  readonly procedures: readonly Procedure[];
  readonly gate: Gate;
  readonly health: Health;
  readonly bodies: BodyLimits;
  readonly models: () => readonly ModelRevision[];
}): ProtocolHandler {
  const { gate, health, bodies } = options;
  const router = new Router(createRoutes(options.procedures));
  const pages = createPages(options.models);

  const find = (exchange: Exchange, path: string): Found => {
    const { method = '' } = exchange.request;
    const body = pages.get(path)?.();
    if (body !== undefined) exchange.place?.meter();
    const page = body === undefined ? probe(health, path) : { body, fault: undefined };
    if (page === undefined) return router.find(method, path);
    exchange.received({ route: path });
    if (method === 'GET' || method === 'HEAD') return { kind: 'page', page };
    return { kind: 'method_not_allowed', allow: 'GET, HEAD' };
  };

  const serve = async (exchange: Exchange, found: Route, variables: ReadonlyMap<string, string>): Promise<void> => {
    const { procedure } = found;
    exchange.received({ route: found.template.text });
    if (procedure.limits === 'none') exchange.place?.meter();
    await gate.admit(exchange, exchange.origin, procedure);
    const request = await readRequest(exchange, found, variables, bodies);
    const result = await invoke(procedure, request, exchange);
    respond(exchange, responseOf(exchange, found, result), health.draining);
  };

  const refuse = (exchange: Exchange, error: unknown, closing: boolean, headers = {}): void =>
    respondFault(exchange, exchange.failed(error), closing, headers);

  const answer = async (exchange: Exchange, found: Found): Promise<void> => {
    switch (found.kind) {
      case 'route':
        await serve(exchange, found.route, found.variables);
        break;
      case 'page':
        if (found.page.fault !== undefined) throw found.page.fault;
        respond(exchange, { status: 200, body: found.page.body }, health.draining);
        break;
      case 'not_found':
        exchange.place?.meter();
        throw new DomainError('ROUTE_NOT_FOUND', `no resource has this path; ${found.hint}GET / says where they are`);
      case 'method_not_allowed': {
        exchange.place?.meter();
        const fault = new DomainError('METHOD_NOT_ALLOWED', `this resource has only ${found.allow}`);
        refuse(exchange, fault, health.draining, { allow: found.allow });
      }
    }
  };

  return {
    async handle(exchange, path) {
      try {
        await answer(exchange, find(exchange, path));
      } catch (error) {
        refuse(exchange, error, health.draining);
      }
    },
    refuse: (exchange, fault, closing) => refuse(exchange, fault, closing || health.draining),
  };
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
