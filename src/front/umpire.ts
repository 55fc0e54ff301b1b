/** The service behind the bridge, called over gRPC as any client calls it. */
import { isIP } from 'node:net';
import { checkServerIdentity, createSecureContext, type PeerCertificate } from 'node:tls';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { Client, credentials, Metadata, type ServiceError, status as Status } from '@grpc/grpc-js';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';
import { type Catalog, CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import {
  type CreateDecisionRequestSchema,
  type Decision,
  DecisionService,
} from '../../gen/umpire/v1/decision_service_pb.ts';
import { type Model, ModelService, ModelStatus } from '../../gen/umpire/v1/model_service_pb.ts';
import { ERROR_TABLE, type ErrorReason } from '../domain/errors.ts';
import { Turns } from './places.ts';
import { Refused } from './refused.ts';

/** Whose call it is, and for how long its answer is wanted. */
export interface Terms {
  /** Headers that the service is to see: key, request id, and the addresses that the call came through. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** When the answer is too late, on the clock of `performance.now()`. */
  readonly deadline: number;
}

/** Milliseconds for which it is remembered whether the service is ready, and that it may take to say so. */
const [READINESS_KEPT, READINESS_TIME] = [1000, 2000];
/**
 * Decisions at a time: each holds the whole text once more. They are fewer than the streams that the service allows on
 * a connection, so nothing else waits for them.
 */
const DECISIONS = 96;

/** A client of one service. Its methods throw Refused. */
export class Umpire {
  readonly #client: Client;
  readonly #turns = new Turns(DECISIONS);
  #readiness = { until: Number.NEGATIVE_INFINITY, ready: Promise.resolve(false) };

  /** `url`: where the service listens, with http or https. */
  constructor(url: string) {
    const { protocol, host, hostname, port } = new URL(url);
    const isSecure = protocol === 'https:';
    const address = hostname.replace(/^\[(.*)\]$/, '$1');
    const check = (_: string, certificate: PeerCertificate) => checkServerIdentity(address, certificate);
    this.#client = new Client(
      `${hostname}:${port || (isSecure ? 443 : 80)}`,
      isSecure
        ? credentials.createFromSecureContext(createSecureContext(), { checkServerIdentity: check })
        : credentials.createInsecure(),
      {
        // TLS knows no address as a server's name: the certificate is checked for the address all the same.
        'grpc.ssl_target_name_override': isIP(address) === 0 ? address : 'localhost',
        'grpc.default_authority': host,
        'grpc.enable_http_proxy': 0,
        'grpc.service_config_disable_resolution': 1,
        'grpc.initial_reconnect_backoff_ms': 100,
        'grpc.max_reconnect_backoff_ms': 1000,
      },
    );
  }

  /** Decides, once it is its turn. */
  async decide(asked: MessageInitShape<typeof CreateDecisionRequestSchema>, terms: Terms): Promise<Decision> {
    const ask = () => this.#call(DecisionService.method.createDecision, asked, terms);
    return present((await this.#turns.run(ask)).decision);
  }

  /** All models. */
  async models(terms: Terms): Promise<readonly Model[]> {
    return (await this.#call(ModelService.method.listModels, {}, terms)).data;
  }

  /** One model. */
  async model(model: string, terms: Terms): Promise<Model> {
    return present((await this.#call(ModelService.method.getModel, { model }, terms)).model);
  }

  /** A catalog of the caller's. */
  async catalog(id: string, terms: Terms): Promise<Catalog> {
    return present((await this.#call(CatalogService.method.getCatalog, { id }, terms)).catalog);
  }

  /** Whether a model is ready. It is asked once a second at most, however many want to know. */
  isReady(): Promise<boolean> {
    const now = performance.now();
    if (this.#readiness.until < now) {
      const terms = { headers: {}, deadline: now + READINESS_TIME, signal: new AbortController().signal };
      const ready = this.models(terms).then(
        (models) => models.some(({ status }) => status === ModelStatus.READY),
        () => false,
      );
      this.#readiness = { until: now + READINESS_KEPT, ready };
    }
    return this.#readiness.ready;
  }

  /** Closes the connection. */
  close(): void {
    this.#client.close();
  }

  async #call<I extends DescMessage, O extends DescMessage>(
    { parent, name, input, output }: DescMethodUnary<I, O>,
    asked: MessageInitShape<I>,
    { headers, signal, deadline }: Terms,
  ): Promise<MessageShape<O>> {
    const left = Math.floor(deadline - performance.now());
    if (signal.aborted) throw new Refused('CANCELED', 'the caller left');
    if (left < 1) throw new Refused('DEADLINE_EXCEEDED', 'the request took longer than its deadline allows');
    const metadata = new Metadata();
    for (const [header, value] of Object.entries(headers)) metadata.set(header, value);
    const { promise, resolve, reject } = Promise.withResolvers<MessageShape<O>>();
    const call = this.#client.makeUnaryRequest(
      `/${parent.typeName}/${name}`,
      (message: MessageShape<I>) => Buffer.from(toBinary(input, message)),
      (bytes: Buffer) => fromBinary(output, bytes),
      create(input, asked),
      metadata,
      { deadline: Date.now() + left },
      (error: ServiceError | null, answer?: MessageShape<O>) =>
        answer === undefined ? reject(error) : resolve(answer),
    );
    const leave = (): void => call.cancel();
    signal.addEventListener('abort', leave);
    try {
      return await promise;
    } catch (error) {
      throw refusedBy(error as ServiceError);
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Refused('INTERNAL', 'the service answered without an answer');
  return value;
}

function refusedBy(error: ServiceError): Refused {
  const { code, details, metadata } = error;
  const [status] = metadata.get('grpc-status-details-bin');
  const [sent] = status === undefined ? [] : fromBinary(StatusSchema, status as Buffer).details;
  const info = sent && anyUnpack(sent, ErrorInfoSchema);
  if (info !== undefined && Object.hasOwn(ERROR_TABLE, info.reason)) {
    const { param } = info.metadata;
    const [seconds] = metadata.get('retry-after');
    return new Refused(info.reason as ErrorReason, details, {
      path: param === undefined ? undefined : [param],
      retryAfter: seconds === undefined ? undefined : Number(seconds),
    });
  }
  // No service sent it, or something that is not Umpire.
  if (code === Status.CANCELLED) return new Refused('CANCELED', 'the caller left');
  if (code === Status.DEADLINE_EXCEEDED)
    return new Refused('DEADLINE_EXCEEDED', 'the service did not answer within the deadline');
  return new Refused('NOT_READY', 'the service cannot be reached', { retryAfter: 1, cause: error });
}
