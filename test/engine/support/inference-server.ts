/**
 * A server of the Open Inference Protocol for tests: gRPC by Connect, scores by ONNX Runtime on a real graph, row by
 * row. A test may slow it, stop it, have it fail or falsify its answers.
 */
import { createHash } from 'node:crypto';
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2Session,
  type SecureServerOptions,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError, type HandlerContext, type Interceptor } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { ExecutionContext } from 'ava';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import {
  GRPCInferenceService,
  type ModelInferRequest,
  type ModelInferResponse,
  ModelInferResponseSchema,
  type ModelMetadataResponse_TensorMetadata,
} from '../../../gen/inference/grpc_predict_v2_pb.ts';

/** One inference as it arrived. */
interface ReceivedRequest {
  readonly model: string;
  readonly version: string;
  readonly rows: number;
  /** Shapes of the inputs by name. */
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  /** The whole request but for its id, hashed. */
  readonly digest: string;
  /** Milliseconds that it was given. */
  readonly within: number;
  /** Whether the client gave it up. */
  canceled: boolean;
}

/** One row of an inference. */
interface ServedRow {
  readonly integers: Readonly<Record<string, BigInt64Array>>;
  readonly texts: Readonly<Record<string, string>>;
}

/** How the server behaves now. */
interface Behaviour {
  healthy: boolean;
  ready: boolean;
  modelReady: boolean;
  /** Milliseconds before an inference is answered. */
  delay: number;
  /** Whether it answers nothing at all, not even whether it is ready. */
  frozen: boolean;
  /** The bearer token that every call must bring; undefined for none. */
  token: string | undefined;
  /** The gRPC status of inferences, with details; undefined for answers. */
  fault: { readonly code: number; readonly details: string } | undefined;
  /** So many inferences that fail with that status; then it is cleared. */
  faultFor: number;
  /** Changes an answer. */
  falsify: (response: ModelInferResponse) => ModelInferResponse;
}

/** A server that listens. */
export interface InferenceServer {
  readonly address: string;
  readonly behaviour: Behaviour;
  readonly requests: ReceivedRequest[];
  /** The most inferences that were under way at a time. */
  readonly busiest: number;
  /** Cuts all connections and stops listening. */
  kill(): Promise<void>;
  /** Listens again, on the same port. */
  revive(): Promise<void>;
}

/** What is served. */
export interface ServedModel {
  readonly graph: Uint8Array;
  /** The graph's output. */
  readonly output: string;
  /** The ids for a row of texts; without it the server takes the graph's inputs. */
  readonly idsOf?: (row: ServedRow) => BigInt64Array;
  readonly metadata?: {
    readonly inputs: readonly Omit<ModelMetadataResponse_TensorMetadata, '$typeName'>[];
    readonly outputs: readonly Omit<ModelMetadataResponse_TensorMetadata, '$typeName'>[];
  };
  readonly tls?: SecureServerOptions;
  /** Whether values are answered in typed fields instead of raw. */
  readonly typed?: boolean;
}

/** Starts a server that ends with its test. */
export async function startInferenceServer(
  t: ExecutionContext<unknown>,
  served: ServedModel,
): Promise<InferenceServer> {
  const session = await InferenceSession.create(served.graph, { intraOpNumThreads: 1, interOpNumThreads: 1 });
  const behaviour: Behaviour = {
    healthy: true,
    ready: true,
    modelReady: true,
    delay: 0,
    frozen: false,
    token: undefined,
    fault: undefined,
    faultFor: Number.POSITIVE_INFINITY,
    falsify: (response) => response,
  };
  const requests: ReceivedRequest[] = [];
  let underWay = 0;
  let busiest = 0;

  const values = async (request: ModelInferRequest): Promise<readonly Float32Array[]> => {
    const results: Float32Array[] = [];
    for (const row of rowsOf(request)) {
      const ids = served.idsOf?.(row);
      const feeds: Record<string, Tensor> = {};
      for (const name of session.inputNames) {
        const data = ids ?? row.integers[name];
        if (data === undefined) throw new Error(`there is no input ${name}`);
        feeds[name] = new Tensor('int64', data, [1, data.length]);
      }
      const found = (await session.run(feeds))[served.output];
      if (!(found?.data instanceof Float32Array)) throw new Error('the graph has no float32 output of that name');
      results.push(found.data.slice());
    }
    return results;
  };

  const infer = async (request: ModelInferRequest): Promise<ModelInferResponse> => {
    const found = await values(request);
    const width = found[0]?.length ?? 0;
    const all = Float32Array.from(found.flatMap((row) => [...row]));
    return create(ModelInferResponseSchema, {
      modelName: request.modelName,
      modelVersion: request.modelVersion || '1',
      id: request.id,
      outputs: [
        {
          name: served.output,
          datatype: 'FP32',
          shape: [found.length, width].map(BigInt),
          ...(served.typed === true && { contents: { fp32Contents: [...all] } }),
        },
      ],
      rawOutputContents: served.typed === true ? [] : [new Uint8Array(all.buffer)],
    });
  };

  const modelInfer = async (request: ModelInferRequest, { signal, timeoutMs }: HandlerContext) => {
    const received = receivedOf(request, timeoutMs() ?? Number.POSITIVE_INFINITY);
    requests.push(received);
    let answered = false;
    signal.addEventListener('abort', () => {
      received.canceled ||= !answered;
    });
    busiest = Math.max(busiest, ++underWay);
    try {
      const { delay, fault } = behaviour;
      // Who left waits for nothing, nor does who ends this server.
      if (delay > 0) await sleep(delay, undefined, { signal });
      if (fault === undefined) return behaviour.falsify(await infer(request));
      if (--behaviour.faultFor <= 0) {
        behaviour.fault = undefined;
        behaviour.faultFor = Number.POSITIVE_INFINITY;
      }
      throw new ConnectError(fault.details, fault.code);
    } finally {
      answered = true;
      underWay--;
    }
  };

  const admit: Interceptor = (next) => async (call) => {
    if (behaviour.frozen) await new Promise(() => {});
    const { token } = behaviour;
    if (token === undefined || call.header.get('authorization') === `Bearer ${token}`) return await next(call);
    throw new ConnectError('who asks?', Code.Unauthenticated);
  };
  const handler = connectNodeAdapter({
    // What a client accepts is not sent all the same.
    acceptCompression: [],
    interceptors: [admit],
    routes: (router) =>
      router.service(GRPCInferenceService, {
        serverLive: () => ({ live: behaviour.healthy }),
        serverReady: () => ({ ready: behaviour.ready }),
        modelReady: () => ({ ready: behaviour.modelReady }),
        modelMetadata: () => ({ name: 'model', ...(served.metadata as object) }),
        modelInfer,
      }),
  });

  let server: Http2Server | Http2SecureServer | undefined;
  const sessions = new Set<Http2Session>();
  const listen = async (port: number): Promise<number> => {
    const started = served.tls === undefined ? createServer(handler) : createSecureServer(served.tls, handler);
    server = started.on('session', (session) => {
      sessions.add(session.once('close', () => sessions.delete(session)));
    });
    await new Promise<void>((resolve, reject) => started.once('error', reject).listen(port, '127.0.0.1', resolve));
    return (started.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const kill = async (): Promise<void> => {
    server?.close();
    server = undefined;
    for (const session of sessions) session.destroy();
    // Ending the process in the middle of a run would abort it.
    while (underWay > 0) await sleep(5);
  };
  t.teardown(kill);
  return {
    address: `127.0.0.1:${port}`,
    behaviour,
    requests,
    get busiest() {
      return busiest;
    },
    kill,
    async revive() {
      await listen(port);
    },
  };
}

/** Notes a request. `within`: milliseconds that it was given. */
function receivedOf(request: ModelInferRequest, within: number): ReceivedRequest {
  const hash = createHash('sha256');
  for (const contents of request.rawInputContents) hash.update(contents).update('|');
  const shapes = Object.fromEntries(request.inputs.map(({ name, shape }) => [name, shape.map(Number)]));
  hash.update(JSON.stringify([request.modelName, request.modelVersion, shapes]));
  return {
    model: request.modelName,
    version: request.modelVersion,
    rows: Number(request.inputs[0]?.shape[0] ?? 0),
    shapes,
    digest: hash.digest('hex'),
    within,
    canceled: false,
  };
}

/** The rows of a request, read by the protocol's own rules. */
function rowsOf(request: ModelInferRequest): readonly ServedRow[] {
  const count = Number(request.inputs[0]?.shape[0] ?? 0);
  const rows = Array.from({ length: count }, () => ({
    integers: {} as Record<string, BigInt64Array>,
    texts: {} as Record<string, string>,
  }));
  for (const [i, { name, datatype, shape }] of request.inputs.entries()) {
    const raw = request.rawInputContents[i] ?? new Uint8Array();
    const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
    if (datatype === 'BYTES') {
      let at = 0;
      for (const row of rows) {
        const length = view.getUint32(at, true);
        row.texts[name] = new TextDecoder().decode(raw.subarray(at + 4, at + 4 + length));
        at += 4 + length;
      }
      if (at !== raw.length) throw new Error('left-over bytes');
      continue;
    }
    const width = Number(shape[1]);
    const size = datatype === 'INT64' ? 8 : 4;
    if (raw.length !== count * width * size) throw new Error('a tensor has the wrong size');
    for (const [r, row] of rows.entries()) {
      row.integers[name] = BigInt64Array.from({ length: width }, (_, c) => {
        const at = (r * width + c) * size;
        return size === 8 ? view.getBigInt64(at, true) : BigInt(view.getInt32(at, true));
      });
    }
  }
  return rows;
}
