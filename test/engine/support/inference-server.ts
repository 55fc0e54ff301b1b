/**
 * A server of the Open Inference Protocol for tests: gRPC by grpc-js, scores by ONNX Runtime on a real graph, row by
 * row. A test may slow it, stop it, have it fail or falsify its answers.
 */
import { create, type DescMethodUnary, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  type UntypedHandleCall,
} from '@grpc/grpc-js';
import type { ExecutionContext } from 'ava';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import {
  GRPCInferenceService,
  type ModelInferRequest,
  type ModelInferResponse,
  ModelInferResponseSchema,
  type ModelMetadataResponse_TensorMetadata,
  ModelMetadataResponseSchema,
  ModelReadyResponseSchema,
  ServerLiveResponseSchema,
  ServerMetadataResponseSchema,
  ServerReadyResponseSchema,
} from '../../../gen/inference/grpc_predict_v2_pb.ts';
import { type ReceivedRequest, receivedOf, rowsOf, type ServedRow } from './inference-requests.ts';

/** How the server behaves now. */
export interface Behaviour {
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
  readonly credentials?: ServerCredentials;
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

  const answerInfer = async (
    call: ServerUnaryCall<ModelInferRequest, ModelInferResponse>,
    answer: sendUnaryData<ModelInferResponse>,
  ): Promise<void> => {
    const received = receivedOf(call.request, new Date(call.getDeadline()).getTime() - Date.now());
    requests.push(received);
    call.on('cancelled', () => {
      received.canceled = true;
    });
    busiest = Math.max(busiest, ++underWay);
    try {
      const { delay, fault } = behaviour;
      if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
      if (fault !== undefined) {
        if (--behaviour.faultFor <= 0) {
          behaviour.fault = undefined;
          behaviour.faultFor = Number.POSITIVE_INFINITY;
        }
        answer(fault);
        return;
      }
      answer(null, behaviour.falsify(await infer(call.request)));
    } catch (error) {
      answer({ code: 13, details: String(error) });
    } finally {
      underWay--;
    }
  };

  const service = GRPCInferenceService.method;
  const handlers: Readonly<
    Record<string, (call: ServerUnaryCall<never, never>, answer: sendUnaryData<never>) => void>
  > = {
    ServerLive: reply(() => create(ServerLiveResponseSchema, { live: behaviour.healthy })),
    ServerReady: reply(() => create(ServerReadyResponseSchema, { ready: behaviour.ready })),
    ModelReady: reply(() => create(ModelReadyResponseSchema, { ready: behaviour.modelReady })),
    ServerMetadata: reply(() => create(ServerMetadataResponseSchema, { name: 'test', version: '1' })),
    ModelMetadata: reply(() => create(ModelMetadataResponseSchema, { name: 'model', ...served.metadata } as never)),
    ModelInfer: (call, answer) => void answerInfer(call as never, answer as never),
  };
  const definition: ServiceDefinition = Object.fromEntries(
    Object.values(service).map((method) => [method.name, definitionOf(method as DescMethodUnary)]),
  );
  const implementation = Object.fromEntries(
    Object.entries(handlers).map(([name, handle]) => [
      name,
      ((call: ServerUnaryCall<never, never>, answer: sendUnaryData<never>) => {
        if (behaviour.frozen) return;
        const { token } = behaviour;
        const [said] = call.metadata.get('authorization');
        if (token === undefined || said === `Bearer ${token}`) handle(call, answer);
        else answer({ code: 16, details: 'who asks?' });
      }) as UntypedHandleCall,
    ]),
  );

  let server: Server | undefined;
  const listen = (port: number): Promise<number> =>
    new Promise((resolve, reject) => {
      server = new Server({ 'grpc.max_receive_message_length': -1 });
      server.addService(definition, implementation);
      server.bindAsync(
        `127.0.0.1:${port}`,
        served.credentials ?? ServerCredentials.createInsecure(),
        (error, bound) => {
          if (error === null) resolve(bound);
          else reject(error);
        },
      );
    });
  const port = await listen(0);
  const kill = async (): Promise<void> => {
    server?.forceShutdown();
    server = undefined;
    // Ending the process in the middle of a run would abort it.
    while (underWay > 0) await new Promise((resolve) => setTimeout(resolve, 5));
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

function reply<T>(make: () => T) {
  return (_: unknown, answer: sendUnaryData<never>): void => answer(null, make() as never);
}

function definitionOf(method: DescMethodUnary): ServiceDefinition[string] {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message) => Buffer.from(toBinary(method.input, message)),
    requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
    responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
  };
}
