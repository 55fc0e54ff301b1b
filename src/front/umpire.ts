/** The service behind the bridge, called over gRPC as any client calls it. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type CallOptions, type Client, Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
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
/** Decisions at a time: each holds the whole text once more. */
const DECISIONS = 128;
/** Calls at a time on one connection, fewer than the streams that the service allows. */
const CALLS_PER_CONNECTION = 96;

/** One connection, with the clients that share it. */
class Connection {
  calls = 0;
  readonly session: Http2SessionManager;
  readonly decisions: Client<typeof DecisionService>;
  readonly models: Client<typeof ModelService>;
  readonly catalogs: Client<typeof CatalogService>;

  constructor(url: string) {
    this.session = new Http2SessionManager(url);
    const transport = createGrpcTransport({ baseUrl: url, sessionManager: this.session });
    this.decisions = createClient(DecisionService, transport);
    this.models = createClient(ModelService, transport);
    this.catalogs = createClient(CatalogService, transport);
  }
}

/** A client of one service. Its methods throw Refused. */
export class Umpire {
  readonly #url: string;
  readonly #connections: Connection[] = [];
  readonly #turns = new Turns(DECISIONS);
  #readiness = { until: Number.NEGATIVE_INFINITY, ready: Promise.resolve(false) };

  /** `url`: where the service listens, with http or https. */
  constructor(url: string) {
    this.#url = url;
  }

  /** Decides, once it is its turn. */
  decide(asked: MessageInitShape<typeof CreateDecisionRequestSchema>, terms: Terms): Promise<Decision> {
    const ask = () =>
      this.#call(terms, async ({ decisions }, options) => (await decisions.createDecision(asked, options)).decision);
    return this.#turns.run(ask);
  }

  /** All models. */
  models(terms: Terms): Promise<readonly Model[]> {
    return this.#call(terms, async ({ models }, options) => (await models.listModels({}, options)).data);
  }

  /** One model. */
  model(model: string, terms: Terms): Promise<Model> {
    return this.#call(terms, async ({ models }, options) => (await models.getModel({ model }, options)).model);
  }

  /** A catalog of the caller's. */
  catalog(id: string, terms: Terms): Promise<Catalog> {
    return this.#call(terms, async ({ catalogs }, options) => (await catalogs.getCatalog({ id }, options)).catalog);
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

  /** Closes all connections. */
  close(): void {
    for (const { session } of this.#connections) session.abort();
  }

  async #call<T>(
    { headers, signal, deadline }: Terms,
    call: (connection: Connection, options: CallOptions) => Promise<T | undefined>,
  ): Promise<T> {
    const timeoutMs = Math.floor(deadline - performance.now());
    if (signal.aborted) throw new Refused('CANCELED', 'the caller left');
    if (timeoutMs < 1) throw new Refused('DEADLINE_EXCEEDED', 'the request took longer than its deadline allows');
    let connection = this.#connections.find(({ calls }) => calls < CALLS_PER_CONNECTION);
    if (connection === undefined) {
      connection = new Connection(this.#url);
      this.#connections.push(connection);
    }
    connection.calls += 1;
    try {
      const answer = await call(connection, { headers, signal, timeoutMs });
      if (answer !== undefined) return answer;
    } catch (error) {
      throw refusedBy(ConnectError.from(error));
    } finally {
      connection.calls -= 1;
    }
    throw new Refused('INTERNAL', 'the service answered without an answer');
  }
}

function refusedBy(error: ConnectError): Refused {
  const [info] = error.findDetails(ErrorInfoSchema);
  if (info !== undefined && Object.hasOwn(ERROR_TABLE, info.reason)) {
    const { param } = info.metadata;
    const seconds = error.metadata.get('retry-after');
    return new Refused(info.reason as ErrorReason, error.rawMessage, {
      path: param === undefined ? undefined : [param],
      retryAfter: seconds === null ? undefined : Number(seconds),
    });
  }
  // No service sent it, or something that is not Umpire.
  if (error.code === Code.Canceled) return new Refused('CANCELED', 'the caller left');
  if (error.code === Code.DeadlineExceeded)
    return new Refused('DEADLINE_EXCEEDED', 'the service did not answer within the deadline');
  return new Refused('NOT_READY', 'the service cannot be reached', { retryAfter: 1, cause: error });
}
