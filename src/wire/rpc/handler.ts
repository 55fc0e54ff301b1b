/** gRPC and Connect, in front of the same procedures as REST, through connect-node with its unsafe defaults changed. */
import type { Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import {
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from '@connectrpc/connect';
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { Health as HealthService } from '../../../gen/health/v1/health_pb.ts';
import type { BodyLimits, BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../logger.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Gate } from '../call/gate.ts';
import { invoke } from '../call/invoke.ts';
import type { Health } from '../health.ts';
import type { Holdings } from '../holdings/holdings.ts';
import { MAX_BODY_BYTES, MAX_TIMEOUT } from '../http/bounds.ts';
import type { Exchange } from '../http/exchange.ts';
import { respondFault } from '../http/fault.ts';
import { isHttp2 } from '../http/messages.ts';
import { compileMessageChecker } from './check-message.ts';
import { toConnectError } from './connect-error.ts';
import type { UniversalHandler } from './connect-private.ts';
import { takeTimeout } from './deadline.ts';
import { answerGrpcFault, isGrpc } from './grpc-fault.ts';
import { createGrpcHealth } from './grpc-health.ts';
import { compileMessageScan } from './message-scan.ts';
import { repairFault } from './protocol-faults.ts';
import { createReflector, type Reflector } from './reflection.ts';
import { requestBody } from './request-body.ts';
import { bodyForm, scannedBody } from './scanned-body.ts';
import { isPackedWhole } from './unpacked-body.ts';

/** Answers RPCs. */
export interface RpcHandler {
  /** Whether the path is that of an RPC which is served. */
  serves(path: string): boolean;
  /** Answers the RPC with that path. Never rejects. */
  handle(exchange: Exchange, path: string): Promise<void>;
}

/** Bytes of a message that needs no more than a name. */
const MAX_SMALL_BYTES = 16 * 1024;
/** Options of a procedure stand for all of the router's that say which protocols there are. */
const SMALL = { readMaxBytes: MAX_SMALL_BYTES, grpcWeb: false };

const exchangeKey = createContextKey<Exchange | undefined>(undefined);

function exchangeOf(context: HandlerContext): Exchange {
  const exchange = context.values.get(exchangeKey);
  if (exchange === undefined) throw new Error('a call without its exchange');
  return exchange;
}

/** A handler over procedures. */
export function createRpcHandler(options: {
  readonly procedures: readonly Procedure[];
  readonly gate: Gate;
  readonly health: Health;
  readonly bodies: BodyLimits;
  readonly holdings: Pick<Holdings, 'watch'>;
  readonly reflection: boolean;
  readonly logger: Logger;
}): RpcHandler {
  const { procedures, gate, health, bodies, holdings, logger } = options;
  const byMethod = new Map(procedures.map((procedure) => [procedure.method as unknown, procedure]));

  const router = createConnectRouter({
    grpcWeb: false,
    readMaxBytes: MAX_BODY_BYTES,
    jsonOptions: { ignoreUnknownFields: false },
    acceptCompression: [compressionGzip],
    // Answers are small; compressing them would cost more than the decision's own bookkeeping.
    compressMinBytes: 0x7fffffff,
    requestGate: async (context) => {
      const exchange = exchangeOf(context);
      exchange.received({ protocol: context.protocolName === 'connect' ? 'connect' : 'grpc' });
      const procedure = byMethod.get(context.method);
      if (procedure === undefined || exchange.record.admittedAt !== undefined) return;
      try {
        await gate(exchange, procedure);
      } catch (error) {
        throw toConnectError(exchange.failed(error));
      }
    },
  });
  for (const procedure of procedures) mount(router, procedure);
  const services = [...new Set(procedures.map((procedure) => procedure.method.parent))];
  const grpcHealth = createGrpcHealth(health, services, (context, end) => holdings.watch(exchangeOf(context), end));
  router.service(
    HealthService,
    { ...grpcHealth, check: (request, context) => visibly(context, () => grpcHealth.check(request, context)) },
    SMALL,
  );
  if (options.reflection) mountReflection(router, createReflector([...services, HealthService]));

  const scans = new Map(procedures.map(({ method }) => [method as unknown, compileMessageScan(method.input)]));

  const bodyOf = (exchange: Exchange, { method }: UniversalHandler, timeout: number): AsyncIterable<Uint8Array> => {
    const { request } = exchange;
    const scan = scans.get(method);
    const form = bodyForm(request);
    if (scan !== undefined && isPackedWhole(form)) {
      // Connect gets it unpacked.
      delete request.headers['content-encoding'];
      delete request.headers['content-length'];
    }
    // The caller is known when the body is asked for: the gate has run.
    let ofCaller: BodyMeter | undefined;
    const meter: BodyMeter = (bytes) => {
      ofCaller ??= bodies.meter(exchange.caller);
      return ofCaller(bytes);
    };
    return scannedBody({
      open: () => requestBody(request, timeout, form.grpc, meter),
      meter,
      scan,
      form,
      visible: (fault) => toConnectError(exchange.failed(fault)),
    });
  };

  const handlers = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));

  const answer = async (exchange: Exchange, handler: UniversalHandler): Promise<void> => {
    const { request, response } = exchange;
    exchange.received({ route: handler.requestPath, timeout: takeTimeout(request.headers) });
    const procedure = byMethod.get(handler.method);
    const grpc = isGrpc(request) && isHttp2(request) && request.method === 'POST';
    try {
      if (procedure === undefined || procedure.limits === 'none') exchange.place?.meter();
      // Through Connect a refusal costs as much as a decision, and many come at once.
      if (grpc) exchange.received({ protocol: 'grpc' });
      if (grpc && procedure !== undefined) await gate(exchange, procedure);
    } catch (error) {
      const fault = exchange.failed(error);
      if (grpc) answerGrpcFault(exchange, fault);
      else respondFault(exchange, fault, health.draining);
      return;
    }
    const values = createContextValues().set(exchangeKey, exchange);
    // A stream of requests, reflection's alone, may outlast a call's usual time.
    const bodyTimeout =
      handler.method.methodKind === 'unary' ? Math.max(0, exchange.deadline - performance.now()) : MAX_TIMEOUT;
    const body = bodyOf(exchange, handler, bodyTimeout);
    const answered = await handler(universalRequestFromNodeRequest(request, response, body as never, values));
    if (answered.body === undefined && answered.status >= 400) {
      // Not the protocol's: a wrong method, content type or HTTP version.
      const headers = Object.fromEntries(answered.header ?? []);
      if (answered.status === 405) headers.allow = [...new Set(handler.allowedMethods)].join(', ');
      respondFault(exchange, exchange.failed(transportFault(answered.status)), health.draining, headers);
      return;
    }
    const repaired = await repairFault(answered, exchange);
    response.setHeader('x-request-id', exchange.requestId);
    if (health.draining && !isHttp2(request)) response.setHeader('connection', 'close');
    // Does not resolve over HTTP/1.1 in this version: nothing may wait for it.
    universalResponseToNodeResponse(repaired, response).catch(() => exchange.depart());
  };

  return {
    serves: (path) => handlers.has(path),
    async handle(exchange, path) {
      try {
        await answer(exchange, handlers.get(path) as UniversalHandler);
      } catch (error) {
        // Only what is wrong with the HTTP request itself throws here, such as an authority that is none.
        logger.debug({ requestId: exchange.requestId, err: error }, 'an RPC request could not be read');
        respondFault(
          exchange,
          exchange.failed(new DomainError('MALFORMED_REQUEST', 'the request is not valid HTTP')),
          health.draining,
        );
      }
    },
  };
}

/** 405, 415 and 505 of Connect's as they look everywhere else. */
function transportFault(status: number): DomainError {
  if (status === 405) return new DomainError('METHOD_NOT_ALLOWED', 'RPCs are called with POST');
  if (status === 415) {
    return new DomainError(
      'UNSUPPORTED_MEDIA_TYPE',
      'send application/json or application/proto (Connect) or application/grpc',
    );
  }
  return new DomainError('MALFORMED_REQUEST', 'this RPC needs HTTP/2');
}

function mount(router: ConnectRouter, procedure: Procedure): void {
  const check = compileMessageChecker(procedure.method.input);
  const answer = (request: Message, context: HandlerContext) =>
    visibly(context, async () => {
      check(request);
      const exchange = exchangeOf(context);
      const result = await invoke(procedure, request, exchange);
      const { learned } = exchange.facts;
      if (learned !== undefined) context.responseHeader.set('x-umpire-learned', learned);
      return result;
    });
  // A request without side effects can come in a URL, which nothing scans.
  const inUrl = procedure.method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  router.rpc(procedure.method, answer, inUrl ? SMALL : undefined);
}

/** Does the work of a call; what it throws becomes the protocol's error and is noted on the exchange. */
async function visibly<T>(context: HandlerContext, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toConnectError(exchangeOf(context).failed(error));
  }
}

function mountReflection(router: ConnectRouter, reflect: Reflector): void {
  router.service(ServerReflection, { serverReflectionInfo: reflect }, SMALL);
  router.service(ServerReflectionAlpha, { serverReflectionInfo: reflect as never }, SMALL);
}
