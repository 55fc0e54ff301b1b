/**
 * The connection to a server that speaks GRPCInferenceService: one to each address of the server, calls that end at a
 * deadline or when nobody waits.
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

/** What a connection is made of. */
interface ConnectionOptions extends ServedModel {
  readonly server: ServerOptions;
  readonly bounds: { readonly messageBytes: number };
}

/** Connects with the first call. Rejects with an Error that names the TLS file or token that cannot be used. */
export async function openInferenceConnection(
  options: ConnectionOptions,
  folder: string,
): Promise<InferenceConnection> {
  const { tls, token } = options.server;
  return new InferenceConnection(options, await readCredentials(tls, folder), await readToken(token, folder));
}

/** The least bound of a response, bytes, whatever a package allows for rows. */
const MIN_MESSAGE_BYTES = 2 ** 20;
/** How long a server may take to say whether it is ready, milliseconds. */
const PATIENCE = 2000;

const patience = (): InferenceTerms => ({ signal: new AbortController().signal, within: PATIENCE });

const SERVICE = GRPCInferenceService.method;

/** One server and a model there, until `close`. */
export class InferenceConnection implements Connection {
  readonly #options: ConnectionOptions;
  readonly #client: Client;
  readonly #token: string | undefined;
  readonly #metadata = new Metadata();

  /**
   * `token`: a bearer token that is sent with every call. @throws Error for TLS to a numeric host without a name:
   * grpc-js cannot check a certificate for one.
   */
  constructor(options: ConnectionOptions, tls: TlsCredentials | undefined, token: string | undefined) {
    const { server, bounds } = options;
    const { ca, certificate, key, serverName } = tls ?? {};
    const host = server.address.slice(0, server.address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
    if (tls !== undefined && serverName === undefined && isIP(host) !== 0) {
      throw new Error(`server.tls.server_name must name the server, since its address is ${host}`);
    }
    this.#options = options;
    this.#token = token;
    if (token !== undefined) this.#metadata.set('authorization', `Bearer ${token}`);
    this.#client = new Client(
      server.address,
      tls === undefined
        ? credentials.createInsecure()
        : credentials.createSsl(ca ?? null, key ?? null, certificate ?? null),
      {
        // A server behind several addresses gets its calls at all of them.
        'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
        'grpc.max_receive_message_length': Math.max(bounds.messageBytes, MIN_MESSAGE_BYTES),
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
  }

  async readinessProblem(): Promise<string | undefined> {
    const { server, model, version } = this.#options;
    const place = `the inference server at ${server.address}`;
    const named = version === '' ? model : `${model}, version ${version},`;
    const asked = create(ModelReadyRequestSchema, { name: model, version });
    try {
      if (!(await this.call(SERVICE.serverLive, create(ServerLiveRequestSchema), patience())).live)
        return `${place} is not live`;
      if (!(await this.call(SERVICE.serverReady, create(ServerReadyRequestSchema), patience())).ready)
        return `${place} is not ready`;
      if (!(await this.call(SERVICE.modelReady, asked, patience())).ready)
        return `${place} says that ${named} is not ready`;
      return undefined;
    } catch (error) {
      return `${place} cannot be asked: ${reasonOf(error)}`;
    }
  }

  /** A server without a description is trusted. */
  async modelProblems(): Promise<readonly string[]> {
    const { model, version, inputs, output } = this.#options;
    try {
      const asked = create(ModelMetadataRequestSchema, { name: model, version });
      const metadata = await this.call(SERVICE.modelMetadata, asked, patience());
      return [
        ...inputs.flatMap((tensor) => tensorProblems('input', tensor, metadata.inputs)),
        ...tensorProblems('output', output, metadata.outputs),
      ];
    } catch (error) {
      if (error instanceof CallFailed && error.code === status.UNIMPLEMENTED) return [];
      return [`the inference server does not say what its model is: ${reasonOf(error)}`];
    }
  }

  /** Sends rows. Rejects with CallFailed. */
  infer(request: ModelInferRequest, terms: InferenceTerms): Promise<ModelInferResponse> {
    return this.call(SERVICE.modelInfer, request, terms);
  }

  close(): void {
    this.#client.close();
  }

  /** Makes a call. Rejects with CallFailed. */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    { signal, within }: InferenceTerms,
  ): Promise<MessageShape<O>> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(new CallFailed('canceled', 'nobody waits for it any more'));
      const leave = (): void => running.cancel();
      const running = this.#client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
        (bytes: Buffer) => bytes,
        request,
        this.#metadata,
        { deadline: Date.now() + within },
        (error: ServiceError | null, bytes?: Buffer) => {
          signal.removeEventListener('abort', leave);
          if (error !== null) {
            const details = withoutToken(error.details, this.#token);
            return reject(failureOf({ code: error.code, details }, method.name));
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
  }
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
