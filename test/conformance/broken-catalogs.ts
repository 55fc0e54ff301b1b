/** For each check of catalogs, gRPC and Connect: a service that breaks that promise. */
import { create, toBinary } from '@bufbuild/protobuf';
import { HealthCheckResponse_ServingStatus, HealthCheckResponseSchema } from '../../gen/health/v1/health_pb.ts';
import { ListModelsResponseSchema } from '../../gen/umpire/v1/model_service_pb.ts';
import { frameOf } from '../../src/conformance/rpc.ts';
import {
  confidence,
  header,
  json,
  on,
  protoConfidence,
  status,
  text,
  trailer,
  type When,
  wrongRefusals,
} from './breaking.ts';
import type { Row } from './broken-decisions.ts';
import type { SeenRequest } from './tape.ts';

const DECIDE = '/umpire.v1.DecisionService/CreateDecision';

/** A request about catalogs. `key`: whose it is; undefined for any. */
const catalog =
  (method: string, when: (request: SeenRequest) => boolean = () => true): When =>
  (request) =>
    request.protocol === 'http1' &&
    request.method === method &&
    request.path.startsWith('/v1/catalogs') &&
    when(request);
const draft = (when: (body: Readonly<Record<string, unknown>>) => boolean): When =>
  catalog('POST', ({ json: body, headers }) => 'authorization' in headers && when(body));
const deciding =
  (when: (request: SeenRequest, before: readonly SeenRequest[]) => boolean): When =>
  (request, _, before) =>
    request.path === '/v1/decisions' &&
    'catalog' in request.json &&
    'authorization' in request.headers &&
    when(request, before);
const answered =
  (code: number, when: When): When =>
  (request, answer, before) =>
    answer.status === code && when(request, answer, before);
const refused = (when: When) => wrongRefusals.map((change) => on(when, change));
const rpc =
  (protocol: SeenRequest['protocol'], path: string, when: (request: SeenRequest) => boolean = () => true): When =>
  (request) =>
    request.protocol === protocol && request.path.endsWith(path) && when(request);
const choicesOf = (body: Readonly<Record<string, unknown>>): readonly string[] =>
  Array.isArray(body.choices) ? body.choices : [];

/** The table; `other` is the header of the other owner's key. */
export const brokenCatalogs = (other: string): readonly Row[] => {
  const byOther = ({ headers }: SeenRequest): boolean => headers.authorization === other;
  return [
    {
      check: 'catalogs.create',
      breakages: [
        on(
          answered(
            201,
            catalog('POST', ({ json: body }) => !('version' in body)),
          ),
          json((body) => ({ ...body, version: '2' })),
        ),
        on(
          answered(201, catalog('POST')),
          json((body) => ({ ...body, owner: 'acme' })),
        ),
      ],
    },
    { check: 'catalogs.location', breakages: [on(answered(201, catalog('POST')), header('location', undefined))] },
    {
      check: 'catalogs.labels',
      breakages: [
        on(
          catalog('GET'),
          json((body) => (String(body.version).startsWith('2026') ? { ...body, version: '2026-11' } : body)),
        ),
      ],
    },
    {
      check: 'catalogs.read',
      breakages: [
        on(
          catalog('GET'),
          json((body) => (choicesOf(body).length === 7 ? { ...body, choices: choicesOf(body).toSorted() } : body)),
        ),
        on(
          catalog('GET'),
          json((body) => ({
            ...body,
            ...(body.choices === undefined
              ? {}
              : { choices: body.choices.map((choice: string) => choice.normalize('NFC')) }),
          })),
        ),
      ],
    },
    {
      check: 'catalogs.decide',
      breakages: [
        on(
          answered(
            200,
            deciding(({ json: body }) => body.model === 'mock'),
          ),
          confidence,
        ),
      ],
    },
    {
      check: 'catalogs.decide-revision',
      breakages: [
        on(
          deciding(({ json: body }) => body.model === 'mock@r1'),
          status(400),
        ),
      ],
    },
    {
      check: 'catalogs.exists',
      breakages: [
        ...refused(answered(409, catalog('POST'))),
        // An overwrite that says that it was none.
        (request, answer, before) =>
          answered(200, catalog('GET'))(request, answer, before) &&
          before.filter(({ method }) => method === 'POST').length === 2 &&
          before.every(({ method }) => method !== 'DELETE') &&
          !before.some(byOther)
            ? json((body) => ({ ...body, choices: ['other', 'choices'] }))(answer, request)
            : undefined,
      ],
    },
    {
      check: 'catalogs.delete',
      breakages: [
        on(answered(204, catalog('DELETE')), text('{}')),
        (request, answer, before) =>
          catalog('DELETE')(request, answer, before) &&
          before.some(({ method }) => method === 'DELETE') &&
          answer.status === 404 &&
          !before.some(byOther) &&
          !/a%20b/.test(request.path) &&
          before.some(({ method }) => method === 'POST')
            ? { ...answer, status: 204, body: Buffer.alloc(0) }
            : undefined,
      ],
    },
    {
      check: 'catalogs.deleted-decides-no-more',
      breakages: refused(
        deciding((request, before) => before.some(({ method }) => method === 'DELETE') && !byOther(request)),
      ),
    },
    {
      check: 'catalogs.create-again',
      breakages: [
        on(
          draft(({ version }) => version === '2'),
          status(409),
        ),
      ],
    },
    { check: 'catalogs.unknown', breakages: refused(catalog('GET', ({ path }) => path.endsWith('a%20b'))) },
    {
      check: 'catalogs.unknown-decides',
      breakages: refused(deciding((_, before) => before.every(({ path }) => path !== '/v1/catalogs'))),
    },
    { check: 'catalogs.other-model', breakages: refused(deciding(({ json: body }) => body.model === 'second')) },
    {
      check: 'catalogs.foreign',
      breakages: [
        on(answered(404, catalog('GET', byOther)), status(403)),
        // Tells what is there from what is not.
        (request, answer, before) =>
          deciding(byOther)(request, answer, before) && /foreign-0/.test(String(request.json.catalog))
            ? json(({ error }) => ({ error: { ...error, message: 'this catalog is not yours' } }))(answer, request)
            : undefined,
      ],
    },
    { check: 'catalogs.ids-are-an-owners-own', breakages: [on(catalog('POST', byOther), status(409))] },
    { check: 'catalogs.missing-id', breakages: refused(draft((body) => !('id' in body))) },
    { check: 'catalogs.missing-model', breakages: refused(draft((body) => !('model' in body) && 'id' in body)) },
    { check: 'catalogs.missing-choices', breakages: refused(draft((body) => !('choices' in body) && 'model' in body)) },
    { check: 'catalogs.bad-id', breakages: refused(draft(({ id }) => id === '..' || id === 'a\n')) },
    { check: 'catalogs.bad-model', breakages: refused(draft(({ model }) => model === 'mock@r1')) },
    { check: 'catalogs.bad-choices', breakages: refused(draft((body) => choicesOf(body).length === 301)) },
    { check: 'catalogs.type-of-choices', breakages: refused(draft(({ choices }) => choices === null)) },
    { check: 'catalogs.model-limit-of-choices', breakages: refused(draft((body) => choicesOf(body).length === 251)) },
    { check: 'catalogs.long-choice', breakages: refused(draft((body) => String(choicesOf(body)[1]).length > 200)) },
    { check: 'catalogs.bad-version', breakages: refused(draft(({ version }) => String(version).length === 129)) },
    { check: 'catalogs.bad-visibility', breakages: refused(draft(({ visibility }) => visibility === 'public')) },
    { check: 'catalogs.unknown-property', breakages: refused(draft((body) => 'owner' in body)) },
    {
      check: 'catalogs.longest-id',
      breakages: [
        on(
          catalog('GET', ({ path }) => path.length > 140),
          status(404),
        ),
        on(
          draft(({ id }) => String(id).length === 128),
          status(400),
        ),
      ],
    },

    {
      check: 'grpc.decide',
      breakages: [
        on(
          rpc('http2', DECIDE, ({ headers }) => !('authorization' in headers) && !('grpc-timeout' in headers)),
          (answer, request) =>
            answer.trailers['grpc-status'] === '0' ? protoConfidence(true)(answer, request) : answer,
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
            answer.trailers['grpc-status'] === '3'
              ? trailer('grpc-status-details-bin', 'CAM')(answer, request)
              : answer,
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
          answered(
            200,
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
};
