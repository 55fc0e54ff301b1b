/**
 * A client of GRPCInferenceService: one connection to each address of the server, calls that end at a deadline or when
 * nobody waits.
 */
import { isIP } from 'node:net';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import {
  GRPCInferenceService,
  type ModelInferRequest,
  type ModelInferResponse,
  ModelMetadataRequestSchema,
  type ModelMetadataResponse,
  ModelReadyRequestSchema,
  ServerLiveRequestSchema,
  ServerReadyRequestSchema,
} from '../../../../../gen/inference/grpc_predict_v2_pb.ts';
import { CallFailed, malformed, reasonOf } from '../call-failed.ts';
import type { InferenceTerms } from '../calls.ts';
import type { Connection } from '../remote-server.ts';
import {
  readCredentials,
  readToken,
  type ServerOptions,
  type TlsCredentials,
  withoutToken,
} from '../server-options.ts';
import type { ServedModel } from './tensors.ts';

/** Where the server is. */
interface ClientOptions {
  readonly address: string;
  readonly tls: TlsCredentials | undefined;
  /** A bearer token that is sent with every call. */
  readonly token?: string | undefined;
  /** The largest response, bytes. */
  readonly messageBytes: number;
}

type ModelName = { readonly name: string; readonly version: string };

/** The calls of the protocol. All reject with CallFailed. */
interface InferenceClient {
  serverLive(terms: InferenceTerms): Promise<boolean>;
  serverReady(terms: InferenceTerms): Promise<boolean>;
  modelReady(model: ModelName, terms: InferenceTerms): Promise<boolean>;
  /** Undefined if the server does not offer it. */
  modelMetadata(model: ModelName, terms: InferenceTerms): Promise<ModelMetadataResponse | undefined>;
  infer(request: ModelInferRequest, terms: InferenceTerms): Promise<ModelInferResponse>;
  /** Ends the connection; calls under way fail. */
  close(): void;
}

/**
 * Connects with the first call. @throws Error for TLS to a numeric host without a name: grpc-js cannot check a
 * certificate for one.
 */
export function createInferenceClient({ address, tls, token, messageBytes }: ClientOptions): InferenceClient {
  const { ca, certificate, key, serverName } = tls ?? {};
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
  if (tls !== undefined && serverName === undefined && isIP(host) !== 0) {
    throw new Error(`server.tls.server_name must name the server, since its address is ${host}`);
  }
  const client = new Client(
    address,
    tls === undefined
      ? credentials.createInsecure()
      : credentials.createSsl(ca ?? null, key ?? null, certificate ?? null),
    {
      // A server behind several addresses gets its calls at all of them.
      'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
      'grpc.max_receive_message_length': messageBytes,
      'grpc.max_send_message_length': -1,
      // A new client makes a new connection: a shared one may be dead without anybody knowing.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 2000,
      // Retries are decided in `remote-server.ts`, and no proxy of the environment is used.
      'grpc.enable_retries': 0,
      'grpc.enable_http_proxy': 0,
      ...(serverName === undefined
        ? {}
        : { 'grpc.ssl_target_name_override': serverName, 'grpc.default_authority': serverName }),
    },
  );

  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);

  const call = <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    { signal, within }: InferenceTerms,
  ): Promise<MessageShape<O>> =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(new CallFailed('canceled', 'nobody waits for it any more'));
      const leave = (): void => running.cancel();
      const running = client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
        (bytes: Buffer) => bytes,
        request,
        metadata,
        { deadline: Date.now() + within },
        (error: ServiceError | null, bytes?: Buffer) => {
          signal.removeEventListener('abort', leave);
          if (error !== null) {
            return reject(failureOf({ code: error.code, details: withoutToken(error.details, token) }, method.name));
          }
          try {
            resolve(fromBinary(method.output, bytes ?? Buffer.alloc(0)));
          } catch {
            reject(malformed(`the answer to ${method.name} is not a ${method.output.typeName}`));
          }
        },
      );
      signal.addEventListener('abort', leave, { once: true });
    });

  const service = GRPCInferenceService.method;
  return {
    serverLive: async (terms) => (await call(service.serverLive, create(ServerLiveRequestSchema), terms)).live,
    serverReady: async (terms) => (await call(service.serverReady, create(ServerReadyRequestSchema), terms)).ready,
    modelReady: async (model, terms) =>
      (await call(service.modelReady, create(ModelReadyRequestSchema, model), terms)).ready,
    async modelMetadata(model, terms) {
      try {
        return await call(service.modelMetadata, create(ModelMetadataRequestSchema, model), terms);
      } catch (error) {
        if (error instanceof CallFailed && error.code === status.UNIMPLEMENTED) return undefined;
        throw error;
      }
    },
    infer: (request, terms) => call(service.modelInfer, request, terms),
    close: () => client.close(),
  };
}

/** Statuses that concern one request alone: the server itself is well. */
const ABOUT_THE_REQUEST: ReadonlySet<number> = new Set([
  status.INVALID_ARGUMENT,
  status.RESOURCE_EXHAUSTED,
  status.OUT_OF_RANGE,
]);

/** The failure that a call's error stands for. */
export function failureOf({ code, details }: Pick<ServiceError, 'code' | 'details'>, method: string): CallFailed {
  const message = `${method} ended as ${status[code] ?? code}`;
  if (code === status.CANCELLED) return new CallFailed('canceled', message, { details, code });
  if (code === status.DEADLINE_EXCEEDED) return new CallFailed('timed_out', message, { details, code });
  if (code === status.UNAVAILABLE) return new CallFailed('unavailable', message, { details, code });
  if (code === status.UNAUTHENTICATED) {
    const why = 'the token was refused, or there is none';
    return new CallFailed('refused', `${message}: ${why}`, { details, code, blame: 'unfit' });
  }
  return new CallFailed('refused', message, {
    details,
    code,
    blame: ABOUT_THE_REQUEST.has(code) ? 'request' : 'server',
  });
}

/** A connection that rows are sent over. */
export interface InferenceConnection extends Connection, Pick<InferenceClient, 'infer'> {}

/** What a connection is made of. */
interface ConnectionOptions extends ServedModel {
  readonly server: ServerOptions;
  readonly bounds: { readonly messageBytes: number };
}

/** The least bound of a response, bytes, whatever a package allows for rows. */
const MIN_MESSAGE_BYTES = 2 ** 20;

/** Connects with the first call. Rejects with an Error that names the TLS file or token that cannot be used. */
export async function openInferenceConnection(
  options: ConnectionOptions,
  folder: string,
): Promise<InferenceConnection> {
  const { server, bounds } = options;
  const client = createInferenceClient({
    address: server.address,
    tls: await readCredentials(server.tls, folder),
    token: await readToken(server.token, folder),
    messageBytes: Math.max(bounds.messageBytes, MIN_MESSAGE_BYTES),
  });
  return {
    readinessProblem: () => readinessProblem(client, server, options),
    modelProblems: () => modelProblems(client, options),
    infer: (request, terms) => client.infer(request, terms),
    close: () => client.close(),
  };
}

// Whether a server and its model take requests, and whether the model is what the package says.

/** How long a server may take to say whether it is ready, milliseconds. */
const PATIENCE = 2000;

const terms = () => ({ signal: new AbortController().signal, within: PATIENCE });

/** Why the server cannot be asked now; undefined if it can. Never rejects. */
async function readinessProblem(
  client: InferenceClient,
  { address }: ServerOptions,
  { model, version }: ServedModel,
): Promise<string | undefined> {
  const place = `the inference server at ${address}`;
  const named = version === '' ? model : `${model}, version ${version},`;
  try {
    if (!(await client.serverLive(terms()))) return `${place} is not live`;
    if (!(await client.serverReady(terms()))) return `${place} is not ready`;
    if (!(await client.modelReady({ name: model, version }, terms())))
      return `${place} says that ${named} is not ready`;
    return undefined;
  } catch (error) {
    return `${place} cannot be asked: ${reasonOf(error)}`;
  }
}

/**
 * How the server's description of its model differs from the package. A server without a description is trusted. Never
 * rejects.
 */
async function modelProblems(
  client: InferenceClient,
  { model, version, inputs, output }: ServedModel,
): Promise<readonly string[]> {
  try {
    const metadata = await client.modelMetadata({ name: model, version }, terms());
    if (metadata === undefined) return [];
    return [
      ...inputs.flatMap((tensor) => tensorProblems('input', tensor, metadata.inputs)),
      ...tensorProblems('output', output, metadata.outputs),
    ];
  } catch (error) {
    return [`the inference server does not say what its model is: ${reasonOf(error)}`];
  }
}

function tensorProblems(
  kind: string,
  { name, datatype, shape }: { readonly name: string; readonly datatype: string; readonly shape: readonly number[] },
  known: ModelMetadataResponse['inputs'],
): readonly string[] {
  if (known.length === 0) return [];
  const found = known.find((tensor) => tensor.name === name);
  if (found === undefined) {
    return [`the server's model has no ${kind} "${name}", but ${known.map((tensor) => `"${tensor.name}"`).join(', ')}`];
  }
  const sizes = found.shape.map(Number);
  const fits =
    sizes.length === shape.length && sizes.every((size, i) => size === -1 || shape[i] === -1 || size === shape[i]);
  const problems: string[] = [];
  if (found.datatype !== datatype)
    problems.push(`the ${kind} "${name}" is ${found.datatype} at the server, not ${datatype}`);
  if (!fits) problems.push(`the ${kind} "${name}" has the shape [${sizes}] at the server, not [${shape}]`);
  return problems;
}
