/** For each check of gRPC and Connect: a service that breaks that promise. */
import { create, toBinary } from '@bufbuild/protobuf';
import { frameOf } from '../../conformance/rpc.ts';
import { HealthCheckResponse_ServingStatus, HealthCheckResponseSchema } from '../../gen/health/v1/health_pb.ts';
import { ListModelsResponseSchema } from '../../gen/umpire/v1/model_service_pb.ts';
import { type Change, header, json, protoConfidence, status, trailer, type When } from './breaking.ts';
import { answered, type Row } from './rows.ts';
import type { SeenRequest } from './tape.ts';

const DECIDE = '/umpire.v1.DecisionService/CreateDecision';

const rpc =
  (protocol: SeenRequest['protocol'], path: string, when: (request: SeenRequest) => boolean = () => true): When =>
  (request) =>
    request.protocol === protocol && request.path.endsWith(path) && when(request);
/** A call by gRPC whose answer has the status. */
const ended =
  (grpcStatus: number, path: string, when: (request: SeenRequest) => boolean = () => true): When =>
  (request, { trailers }) =>
    trailers['grpc-status'] === String(grpcStatus) && rpc('http2', path, when)(request, undefined as never, []);

const keyless = ({ headers }: SeenRequest): boolean => !('authorization' in headers);
const NOT_SERVING = { status: HealthCheckResponse_ServingStatus.NOT_SERVING };
const messageOf =
  (bytes: Uint8Array): Change =>
  (answer) => ({ ...answer, body: frameOf(bytes) });

const GRPC: readonly Row[] = [
  [
    'grpc.decide',
    ended(0, DECIDE, (request) => keyless(request) && !('grpc-timeout' in request.headers)),
    protoConfidence(true),
  ],
  [
    'grpc.request-id',
    rpc('http2', DECIDE),
    (answer, request) =>
      trailer('x-request-id', undefined)(header('x-request-id', undefined)(answer, request), request),
  ],
  [
    'grpc.models',
    rpc('http2', '/ListModels'),
    messageOf(toBinary(ListModelsResponseSchema, create(ListModelsResponseSchema, { data: [] }))),
  ],
  ['grpc.catalogs', ended(0, '/DeleteCatalog'), trailer('grpc-status', '5')],
  [
    'grpc.catalogs',
    rpc('http2', DECIDE, ({ headers }) => String(headers.authorization).startsWith('Bearer ump_')),
    (answer, request) => (answer.trailers['grpc-status'] === '0' ? protoConfidence(true)(answer, request) : answer),
  ],
  [
    'grpc.foreign-catalogs',
    ended(5, '/GetCatalog', ({ body }) => body.includes('foreign-catalogs-0')),
    [trailer('grpc-status', '7'), trailer('grpc-message', 'this catalog is not yours')],
  ],
  ['grpc.unreadable', rpc('http2', DECIDE, ({ body }) => body.length === 8), trailer('grpc-status', '13')],
  ['grpc.unauthenticated', rpc('http2', '/GetCatalog', keyless), trailer('grpc-status', '7')],
  [
    'grpc.unauthenticated',
    rpc('http2', DECIDE, ({ headers }) => headers.authorization === 'Bearer not-a-key'),
    trailer('grpc-status', '0'),
  ],
  [
    'grpc.not-found',
    rpc('http2', '/GetModel', ({ body }) => body.includes('no-such-model')),
    trailer('grpc-status', '2'),
  ],
  [
    'grpc.unavailable',
    rpc('http2', DECIDE, ({ body }) => body.includes('gone')),
    [trailer('grpc-retry-pushback-ms', undefined), trailer('grpc-status', '2')],
  ],
  [
    'grpc.unimplemented',
    rpc('http2', '/NoSuchMethod'),
    (answer, request) => ({ ...header('content-type', 'text/html')(answer, request), status: 404 }),
  ],
  ['grpc.deadline', rpc('http2', DECIDE, ({ headers }) => 'grpc-timeout' in headers), trailer('grpc-status', '0')],
  [
    'grpc.health',
    rpc('http2', '/Check', ({ body }) => body.includes('CatalogService')),
    messageOf(toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, NOT_SERVING))),
  ],
  ['grpc.health-unknown', rpc('http2', '/Check', ({ body }) => body.includes('no.such')), trailer('grpc-status', '0')],
];

const CONNECT: readonly Row[] = [
  [
    'connect.decide-json',
    answered(
      200,
      rpc('http1', DECIDE, ({ headers }) => !('content-type' in headers)),
    ),
    json((body) => ({ decision: { ...body.decision, output: { ...body.decision.output, confidence: 0.1 } } })),
  ],
  [
    'connect.decide-proto',
    rpc('http1', DECIDE, ({ headers }) => headers['content-type'] === 'application/proto'),
    protoConfidence(false),
  ],
  ['connect.unauthenticated', rpc('http1', '/GetCatalog'), status(403)],
  ['connect.unknown-property', rpc('http1', DECIDE, ({ json: body }) => 'temperature' in body), status(200)],
  ['connect.unimplemented', rpc('http1', '/NoSuchMethod'), status(501)],
];

/** The table. */
export const BROKEN_RPCS: readonly Row[] = [...GRPC, ...CONNECT];
