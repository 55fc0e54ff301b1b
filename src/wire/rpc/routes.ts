/**
 * The RPCs by their paths: the procedures, health and reflection, as connect-node serves them with its
 * unsafe defaults changed.
 */
import { type DescField, type DescMessage, isFieldSet, type Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { type ConnectRouter, createConnectRouter, type HandlerContext } from '@connectrpc/connect';
import { compressionGzip } from '@connectrpc/connect-node';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { Health as HealthService } from '../../../gen/health/v1/health_pb.ts';
import { type FieldRule, fieldRules } from '../../domain/field-rules.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Health } from '../health.ts';
import type { Holdings } from '../holdings/holdings.ts';
import { MAX_BODY_BYTES } from '../http/bounds.ts';
import { factHeaders } from '../http/response.ts';
import type { UniversalHandler } from './connect-private.ts';
import { exchangeOf, noting } from './context.ts';
import { createGrpcHealth } from './grpc-health.ts';
import { MessageScan } from './message-scan.ts';
import { createReflector, type Reflector } from './reflection.ts';

/** What answers the path of one RPC. */
export interface Route {
  /** Connect's handler: it decodes the request, calls the procedure and encodes what that returns. */
  readonly handler: UniversalHandler;
  /** Undefined for health and reflection, as is the scan of its requests. */
  readonly procedure: Procedure | undefined;
  readonly scan: MessageScan | undefined;
  /** Bytes that a message of its requests may have. */
  readonly most: number;
}

/** The most bytes of a message that needs no more than a name. */
const MAX_SMALL_BYTES = 16 * 1024;
/** Options of one RPC replace all options of the router about protocols, so gRPC-Web is switched off here as well. */
const SMALL = { readMaxBytes: MAX_SMALL_BYTES, grpcWeb: false };

/** The routes of the procedures, of health and, where it is wanted, of reflection. */
export function createRoutes(options: {
  readonly procedures: readonly Procedure[];
  readonly health: Health;
  readonly holdings: Pick<Holdings, 'watch'>;
  readonly reflection: boolean;
}): ReadonlyMap<string, Route> {
  const { procedures, health, holdings } = options;
  const router = createConnectRouter({
    grpcWeb: false,
    readMaxBytes: MAX_BODY_BYTES,
    jsonOptions: { ignoreUnknownFields: false },
    acceptCompression: [compressionGzip],
    // Answers are small; compressing them would cost more than the rest of a decision's bookkeeping.
    compressMinBytes: 0x7fffffff,
  });
  for (const procedure of procedures) mount(router, procedure);
  const services = [...new Set(procedures.map((procedure) => procedure.method.parent))];
  router.service(HealthService, createGrpcHealth(health, services, holdings), SMALL);
  if (options.reflection) mountReflection(router, createReflector([...services, HealthService]));
  const byMethod = new Map(procedures.map((procedure) => [procedure.method as unknown, procedure]));
  return new Map(
    router.handlers.map((handler) => {
      const procedure = byMethod.get(handler.method);
      const scan = procedure === undefined ? undefined : new MessageScan(procedure.method.input);
      const most = procedure === undefined || comesInUrl(procedure) ? MAX_SMALL_BYTES : MAX_BODY_BYTES;
      return [handler.requestPath, { handler, procedure, scan, most }];
    }),
  );
}

function mount(router: ConnectRouter, procedure: Procedure): void {
  const checker = new MessageChecker(procedure.method.input);
  const answer = (request: Message, context: HandlerContext) =>
    noting(context, async () => {
      checker.check(request);
      const exchange = exchangeOf(context);
      const result = await exchange.invoke(procedure, request);
      for (const header of Object.entries(factHeaders(exchange.facts))) context.responseHeader.set(...header);
      return result;
    });
  router.rpc(procedure.method, answer, comesInUrl(procedure) ? SMALL : undefined);
}

/** A request without side effects can come in a URL, which nothing scans. */
function comesInUrl({ method }: Procedure): boolean {
  return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/** Each message counts as a look-up of its own, the first one with its call, and is answered in a turn of its own. */
function mountReflection(router: ConnectRouter, reflect: Reflector): void {
  const serverReflectionInfo = (requests: Parameters<Reflector>[0], context: HandlerContext) => {
    let first = true;
    return reflect(requests, () =>
      noting(context, () => {
        const { place } = exchangeOf(context);
        if (!first) place?.meter();
        first = false;
        return place?.turn();
      }),
    );
  };
  router.service(ServerReflection, { serverReflectionInfo }, SMALL);
  router.service(ServerReflectionAlpha, { serverReflectionInfo: serverReflectionInfo as never }, SMALL);
}

/** Checks one kind of message. A field without presence of its own counts as present unless it is empty. */
class MessageChecker {
  readonly #fields: readonly { readonly field: DescField; readonly rule: FieldRule }[];

  constructor(desc: DescMessage) {
    const rules = fieldRules(desc);
    this.#fields = desc.fields.map((field) => ({ field, rule: rules[field.name] ?? {} }));
  }

  /** @throws the first fault. */
  check(message: Message): void {
    const isSet = (name: string) => this.#fields.some(({ field }) => field.name === name && isFieldSet(message, field));
    for (const { field, rule } of this.#fields) {
      const missing = rule.presence?.({ has: isSet });
      if (missing !== undefined) throw missing;
      if (rule.value === undefined || !isFieldSet(message, field)) continue;
      const refused = rule.value((message as Message & Record<string, unknown>)[field.localName] as never);
      if (refused !== undefined) throw refused;
    }
  }
}
