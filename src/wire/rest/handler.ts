/** REST: a protocol beside gRPC and Connect, in front of the same procedures. */
import type { BodyLimits } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import type { ModelRevision } from '../../engine/engine.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Gate } from '../call/gate.ts';
import { invoke } from '../call/invoke.ts';
import type { Health } from '../health.ts';
import type { Exchange } from '../http/exchange.ts';
import { respondFault } from '../http/fault.ts';
import type { ProtocolHandler } from '../http/protocol-handler.ts';
import { respond } from '../http/response.ts';
import { type Probe, probe } from '../probes.ts';
import { createPages } from './pages.ts';
import { readRequest } from './request.ts';
import { responseOf } from './response.ts';
import { createRouter, type Match } from './router.ts';
import { createRoutes, type Route } from './routes.ts';

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
  const route = createRouter(createRoutes(options.procedures));
  const pages = createPages(options.models);

  const find = (exchange: Exchange, path: string): Found => {
    const { method = '' } = exchange.request;
    const body = pages.get(path)?.();
    if (body !== undefined) exchange.place?.meter();
    const page = body === undefined ? probe(health, path) : { body, fault: undefined };
    if (page === undefined) return route(method, path);
    exchange.received({ route: path });
    if (method === 'GET' || method === 'HEAD') return { kind: 'page', page };
    return { kind: 'method_not_allowed', allow: 'GET, HEAD' };
  };

  const serve = async (exchange: Exchange, found: Route, variables: ReadonlyMap<string, string>): Promise<void> => {
    const { procedure } = found;
    exchange.received({ route: found.template.text });
    if (procedure.limits === 'none') exchange.place?.meter();
    await gate(exchange, procedure);
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
