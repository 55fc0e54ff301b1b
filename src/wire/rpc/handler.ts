/** gRPC and Connect: protocols beside REST, in front of the same procedures. */
import type { BodyLimits } from '../../domain/body-limits.ts';
import { DomainError, ERROR_TABLE } from '../../domain/errors.ts';
import type { Gate } from '../../domain/gate.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Health } from '../health.ts';
import type { Holdings } from '../holdings/holdings.ts';
import type { Exchange, ProtocolHandler } from '../http/exchange.ts';
import { type HttpRequest, isHttp2, pathOf } from '../http/messages.ts';
import { respondFault } from '../http/response.ts';
import { answerConnectFault, answerGrpcFault, NoCall } from './fault.ts';
import { isGrpc, readRequest, receive, whyNoCall } from './request.ts';
import { answer } from './response.ts';
import { createRoutes, type Route } from './routes.ts';

/** The handler of gRPC and Connect, which also says what is an RPC. */
export interface RpcHandler extends ProtocolHandler {
  /** Whether a request is an RPC, by its path or its content type. */
  takes(request: HttpRequest, path: string): boolean;
}

/** `/package.Service/Method`: no REST resource has a dot in its first segment and exactly one more segment. */
const RPC_PATH = /^\/[\w]+(\.[\w]+)+\/[\w]+$/;

/** A handler over procedures. */
export function createRpcHandler(options: {
  readonly procedures: readonly Procedure[];
  readonly gate: Gate;
  readonly health: Health;
  readonly bodies: BodyLimits;
  readonly holdings: Pick<Holdings, 'watch'>;
  readonly reflection: boolean;
}): RpcHandler {
  const { gate, health, bodies } = options;
  const routes = createRoutes(options);

  const serve = async (exchange: Exchange, route: Route): Promise<void> => {
    receive(exchange, route);
    if (route.procedure !== undefined) await gate.admit(exchange, exchange.origin, route.procedure);
    const request = await readRequest(exchange, route, bodies);
    await answer(exchange, route, await route.handler(request), health.draining);
  };

  /**
   * Refuses in the form of the protocol that the request was found to speak. A refusal through Connect would cost as
   * much as a decision, and many come at once.
   */
  const refuse = (exchange: Exchange, error: unknown, closing: boolean): void => {
    const fault = exchange.failed(error);
    const { protocol } = exchange.record;
    if (fault instanceof NoCall) respondFault(exchange, fault, closing, fault.headers);
    else if (protocol === 'grpc') answerGrpcFault(exchange, fault);
    else if (protocol === 'connect') answerConnectFault(exchange, fault, closing);
    else respondFault(exchange, fault, closing);
  };

  return {
    takes: (request, path) =>
      routes.has(path) || isGrpc(request) || (path.includes('.') && request.method === 'POST' && RPC_PATH.test(path)),
    async handle(exchange, path) {
      try {
        const route = routes.get(path);
        if (route !== undefined) {
          await serve(exchange, route);
          return;
        }
        exchange.received({ protocol: isGrpc(exchange.request) ? 'grpc' : 'connect' });
        exchange.place?.meter();
        throw new DomainError('UNIMPLEMENTED', 'this server has no such procedure');
      } catch (error) {
        refuse(exchange, error, health.draining);
      }
    },
    refuse(exchange, fault, closing) {
      const { request } = exchange;
      if (!isGrpc(request)) {
        const handler = routes.get(pathOf(request))?.handler;
        const isCall = handler === undefined || whyNoCall(request, handler) === undefined;
        if (isCall && cameTooSoon(fault)) exchange.received({ protocol: 'connect' });
      } else if (isHttp2(request)) exchange.received({ protocol: 'grpc' });
      refuse(exchange, fault, closing || health.draining);
    },
  };
}

/**
 * Whether nothing is wrong with the request itself, which is only refused for now. Other faults are sent in the
 * envelope: such a request may be no call.
 */
function cameTooSoon({ reason }: DomainError): boolean {
  const { http } = ERROR_TABLE[reason];
  return http === 429 || http === 503;
}
