/** For each check of gRPC and Connect: a service that breaks that promise. */
import { create, toBinary } from '@bufbuild/protobuf';
import { frameOf } from '../../conformance/rpc.ts';
import { HealthCheckResponse_ServingStatus, HealthCheckResponseSchema } from '../../gen/health/v1/health_pb.ts';
import { ListModelsResponseSchema } from '../../gen/umpire/v1/model_service_pb.ts';
import { header, json, on, protoConfidence, status, trailer, type When } from './breaking.ts';
import { and, type Row, succeeds } from './rows.ts';
import type { SeenRequest } from './tape.ts';

const DECIDE = '/umpire.v1.DecisionService/CreateDecision';

const rpc =
  (protocol: SeenRequest['protocol'], path: string, when: (request: SeenRequest) => boolean = () => true): When =>
  (request) =>
    request.protocol === protocol && request.path.endsWith(path) && when(request);
/** The table. */
export const brokenRpcs: readonly Row[] = [
  {
    check: 'grpc.decide',
    breakages: [
      on(
        rpc('http2', DECIDE, ({ headers }) => !('authorization' in headers) && !('grpc-timeout' in headers)),
        (answer, request) => (answer.trailers['grpc-status'] === '0' ? protoConfidence(true)(answer, request) : answer),
      ),
    ],
  },
  {
    check: 'grpc.request-id',
    breakages: [
      on(rpc('http2', DECIDE), (answer, request) =>
        trailer('x-request-id', undefined)(header('x-request-id', undefined)(answer, request), request),
      ),
    ],
  },
  {
    check: 'grpc.models',
    breakages: [
      on(rpc('http2', '/ListModels'), (answer) => ({
        ...answer,
        body: frameOf(toBinary(ListModelsResponseSchema, create(ListModelsResponseSchema, { data: [] }))),
      })),
    ],
  },
  {
    check: 'grpc.catalogs',
    breakages: [
      on(rpc('http2', '/DeleteCatalog'), trailer('grpc-status', '5')),
      on(
        rpc('http2', DECIDE, ({ headers }) => String(headers.authorization).startsWith('Bearer ump_')),
        protoConfidence(true),
      ),
    ],
  },
  {
    check: 'grpc.invalid',
    breakages: [
      on(
        rpc('http2', DECIDE, ({ body }) => body.length > 20),
        (answer, request) =>
          answer.trailers['grpc-status'] === '3'
            ? trailer('grpc-status-details-bin', undefined)(answer, request)
            : answer,
      ),
      on(
        rpc('http2', DECIDE, ({ body }) => body.length > 20),
        (answer, request) =>
          answer.trailers['grpc-status'] === '3' ? trailer('grpc-status', '2')(answer, request) : answer,
      ),
      // A Status without details.
      on(
        rpc('http2', DECIDE, ({ body }) => body.length > 20),
        (answer, request) =>
          answer.trailers['grpc-status'] === '3' ? trailer('grpc-status-details-bin', 'CAM')(answer, request) : answer,
      ),
    ],
  },
  {
    check: 'grpc.unreadable',
    breakages: [
      on(
        rpc('http2', DECIDE, ({ body }) => body.length === 8),
        trailer('grpc-status', '13'),
      ),
    ],
  },
  {
    check: 'grpc.unauthenticated',
    breakages: [
      on(
        rpc('http2', '/GetCatalog', ({ headers }) => !('authorization' in headers)),
        trailer('grpc-status', '7'),
      ),
      on(
        rpc('http2', DECIDE, ({ headers }) => headers.authorization === 'Bearer not-a-key'),
        trailer('grpc-status', '0'),
      ),
    ],
  },
  {
    check: 'grpc.not-found',
    breakages: [
      on(
        rpc('http2', '/GetModel', ({ body }) => body.includes('no-such-model')),
        trailer('grpc-status', '2'),
      ),
    ],
  },
  {
    check: 'grpc.unavailable',
    breakages: [
      on(
        rpc('http2', DECIDE, ({ body }) => body.includes('gone')),
        trailer('grpc-retry-pushback-ms', undefined),
      ),
      on(
        rpc('http2', DECIDE, ({ body }) => body.includes('gone')),
        trailer('grpc-status', '2'),
      ),
    ],
  },
  {
    check: 'grpc.unimplemented',
    breakages: [
      on(rpc('http2', '/NoSuchMethod'), (answer, request) => ({
        ...header('content-type', 'text/html')(answer, request),
        status: 404,
      })),
    ],
  },
  {
    check: 'grpc.deadline',
    breakages: [
      on(
        rpc('http2', DECIDE, ({ headers }) => 'grpc-timeout' in headers),
        trailer('grpc-status', '0'),
      ),
    ],
  },
  {
    check: 'grpc.health',
    breakages: [
      on(
        rpc('http2', '/Check', ({ body }) => body.includes('CatalogService')),
        (answer) => ({
          ...answer,
          body: frameOf(
            toBinary(
              HealthCheckResponseSchema,
              create(HealthCheckResponseSchema, { status: HealthCheckResponse_ServingStatus.NOT_SERVING }),
            ),
          ),
        }),
      ),
    ],
  },
  {
    check: 'grpc.health-unknown',
    breakages: [
      on(
        rpc('http2', '/Check', ({ body }) => body.includes('no.such')),
        trailer('grpc-status', '0'),
      ),
    ],
  },
  {
    check: 'connect.decide-json',
    breakages: [
      on(
        and(
          succeeds,
          rpc('http1', DECIDE, ({ headers }) => !('content-type' in headers)),
        ),
        json((body) => ({ decision: { ...body.decision, output: { ...body.decision.output, confidence: 0.1 } } })),
      ),
    ],
  },
  {
    check: 'connect.decide-proto',
    breakages: [
      on(
        rpc('http1', DECIDE, ({ headers }) => headers['content-type'] === 'application/proto'),
        protoConfidence(false),
      ),
    ],
  },
  {
    check: 'connect.invalid',
    breakages: [
      json((body) => ({ ...body, details: [] })),
      json((body) => ({ ...body, code: 'unknown' })),
      status(500),
    ].map((change) =>
      on(
        rpc('http1', DECIDE, ({ json: body }) => 'catalog' in body),
        change,
      ),
    ),
  },
  { check: 'connect.unauthenticated', breakages: [on(rpc('http1', '/GetCatalog'), status(403))] },
  {
    check: 'connect.unknown-property',
    breakages: [
      on(
        rpc('http1', DECIDE, ({ json: body }) => 'temperature' in body),
        status(200),
      ),
    ],
  },
  { check: 'connect.unimplemented', breakages: [on(rpc('http1', '/NoSuchMethod'), status(501))] },
];
