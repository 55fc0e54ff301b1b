/**
 * A gRPC client that shares no code with the server: @grpc/grpc-js with the protos loaded from their sources. Only the
 * details of errors are read by generated code.
 */
import { fileURLToPath } from 'node:url';
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import {
  type CallOptions,
  type Client,
  type ClientUnaryCall,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const OPTIONS = { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true };

const definition = loadPackageDefinition(
  loadSync(['umpire/v1/decision_service.proto', 'umpire/v1/model_service.proto', 'umpire/v1/catalog_service.proto'], {
    ...OPTIONS,
    includeDirs: [root('proto')],
  }),
) as never as { umpire: { v1: Record<string, ServiceClientConstructor> } };
const health = loadPackageDefinition(
  loadSync('health/v1/health.proto', { ...OPTIONS, includeDirs: [root('node_modules/grpc-health-check/proto')] }),
) as never as { grpc: { health: { v1: { Health: ServiceClientConstructor } } } };

/** The outcome of a unary call. */
export interface GrpcAnswer<T> {
  readonly response: T | undefined;
  readonly error: ServiceError | undefined;
  /** Initial metadata of the response. */
  readonly headers: Metadata;
  readonly trailers: Metadata;
}

/** Clients of one server. */
export interface GrpcClients {
  readonly decisions: Client;
  readonly models: Client;
  readonly catalogs: Client;
  readonly health: Client;
  close(): void;
}

/** Opens clients to a port of this machine: in cleartext, or with TLS by a certificate that is trusted. */
export function openGrpc(port: number, trusted?: string): GrpcClients {
  const { DecisionService, ModelService, CatalogService } = definition.umpire.v1;
  const open = (service: ServiceClientConstructor | undefined): Client => {
    if (service === undefined) throw new Error('the protos have no such service');
    const security = trusted === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(trusted));
    return new service(`127.0.0.1:${port}`, security, {
      'grpc.enable_retries': 0,
      // No address can be a TLS server's name.
      ...(trusted === undefined ? {} : { 'grpc.ssl_target_name_override': 'localhost' }),
    }) as Client;
  };
  const clients = {
    decisions: open(DecisionService),
    models: open(ModelService),
    catalogs: open(CatalogService),
    health: open(health.grpc.health.v1.Health),
  };
  return {
    ...clients,
    close() {
      for (const client of Object.values(clients)) client.close();
    },
  };
}

/** Calls a unary method by its name in the proto. */
export function callGrpc<T = Record<string, unknown>>(
  client: Client,
  method: string,
  request: object,
  { metadata = {}, ...options }: CallOptions & { metadata?: Record<string, string> } = {},
): Promise<GrpcAnswer<T>> {
  return new Promise((resolve) => {
    const sent = new Metadata();
    for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
    let headers = new Metadata();
    let trailers = new Metadata();
    const methods = client as never as Record<string, (...args: unknown[]) => ClientUnaryCall>;
    const call = methods[method]?.(request, sent, options, (error: ServiceError | null, response?: T) => {
      // The status event comes with the callback, in either order.
      setImmediate(() => resolve({ response, error: error ?? undefined, headers, trailers }));
    });
    if (call === undefined) throw new Error(`the service has no ${method}`);
    call.on('metadata', (received) => {
      headers = received;
    });
    call.on('status', (status) => {
      trailers = status.metadata;
    });
  });
}

/** What an error carries beside its code and message. */
export interface ErrorDetails {
  readonly code: number;
  readonly message: string;
  readonly reason: string | undefined;
  readonly domain: string | undefined;
  readonly param: string | null;
  /** Of RetryInfo, seconds. */
  readonly retrySeconds: number | undefined;
}

/** Reads `grpc-status-details-bin`. @throws Error if the trailers have none. */
export function errorDetails(trailers: Metadata): ErrorDetails {
  const [bytes] = trailers.get('grpc-status-details-bin');
  if (!(bytes instanceof Buffer)) throw new Error('the trailers have no details');
  const { code, message, details } = fromBinary(StatusSchema, bytes);
  const [info] = details.flatMap((any) => anyUnpack(any, ErrorInfoSchema) ?? []);
  const [retry] = details.flatMap((any) => anyUnpack(any, RetryInfoSchema) ?? []);
  return {
    ...{ code, message, reason: info?.reason, domain: info?.domain, param: info?.metadata.param ?? null },
    retrySeconds: retry === undefined ? undefined : Number(retry.retryDelay?.seconds),
  };
}
