/** gRPC and Connect: protocols beside REST, in front of the same procedures. */
import type { BodyLimits } from '../../domain/body-limits.ts';
import { DomainError, ERROR_TABLE } from '../../domain/errors.ts';
import type { Gate } from '../../domain/gate.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Health } from '../health.ts';
import type { Holdings } from '../holdings/holdings.ts';
import type { Exchange, ProtocolHandler } from '../http/exchange.ts';
import { type HttpRequest, isGrpc, isHttp2, pathOf } from '../http/messages.ts';
import { HttpFault, respondFault } from '../http/response.ts';
import { answerConnectFault, answerGrpcFault } from './fault.ts';
import { readRequest, receive, whyNoCall } from './request.ts';
import { answer } from './response.ts';
import { createRoutes, type Route } from './routes.ts';

/** `/package.Service/Method`: no REST resource has a dot in its first segment and exactly one more segment. */
const RPC_PATH = /^\/[\w]+(\.[\w]+)+\/[\w]+$/;

/** What RPCs are served from. */
export interface RpcOptions {
  readonly procedures: readonly Procedure[];
  readonly gate: Gate;
  readonly health: Health;
  readonly bodies: BodyLimits;
  readonly holdings: Pick<Holdings, 'watch'>;
  readonly reflection: boolean;
}

/** The handler of gRPC and Connect, which also says what is an RPC. */
export class RpcHandler implements ProtocolHandler {
  readonly #options: RpcOptions;
  readonly #routes: ReadonlyMap<string, Route>;

  constructor(options: RpcOptions) {
    this.#options = options;
    this.#routes = createRoutes(options);
  }

  /** Whether a request is an RPC, by its path or its content type. */
  takes(request: HttpRequest, path: string): boolean {
    if (this.#routes.has(path) || isGrpc(request)) return true;
    return path.includes('.') && request.method === 'POST' && RPC_PATH.test(path);
  }

  async handle(exchange: Exchange, path: string): Promise<void> {
    const { gate, bodies, health } = this.#options;
    try {
      const route = this.#routes.get(path);
      if (route === undefined) {
        exchange.received({ protocol: isGrpc(exchange.request) ? 'grpc' : 'connect' });
        exchange.place?.meter();
        throw new DomainError('UNIMPLEMENTED', 'this server has no such procedure');
      }
      receive(exchange, route);
      if (route.procedure !== undefined) await gate.admit(exchange, exchange.origin, route.procedure);
      const request = await readRequest(exchange, route, bodies);
      await answer(exchange, route, await route.handler(request), health.draining);
    } catch (error) {
      this.#refuse(exchange, error, false);
    }
  }

  refuse(exchange: Exchange, fault: DomainError, closing: boolean): void {
    const { request } = exchange;
    if (!isGrpc(request)) {
      const handler = this.#routes.get(pathOf(request))?.handler;
      const isCall = handler === undefined || whyNoCall(request, handler) === undefined;
      if (isCall && cameTooSoon(fault)) exchange.received({ protocol: 'connect' });
    } else if (isHttp2(request)) exchange.received({ protocol: 'grpc' });
    this.#refuse(exchange, fault, closing);
  }

  /**
   * Refuses in the form of the protocol that the request was found to speak. A refusal through Connect would cost as
   * much as a decision, and many come at once.
   */
  #refuse(exchange: Exchange, error: unknown, last: boolean): void {
    const fault = exchange.failed(error);
    const { protocol } = exchange.record;
    const closing = last || this.#options.health.draining;
    if (fault instanceof HttpFault || protocol === 'rest') respondFault(exchange, fault, closing);
    else if (protocol === 'grpc') answerGrpcFault(exchange, fault);
    else answerConnectFault(exchange, fault, closing);
  }
}

/**
 * Whether nothing is wrong with the request itself, which is only refused for now. Other faults are sent in the
 * envelope: such a request may be no call.
 */
function cameTooSoon({ reason }: DomainError): boolean {
  const { http } = ERROR_TABLE[reason];
  return http === 429 || http === 503;
}
