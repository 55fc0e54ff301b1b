/** Contract 11: gRPC decides, lists and refuses exactly as REST does. */
import type { MessageShape } from '@bufbuild/protobuf';
import { Health, HealthCheckResponse_ServingStatus } from '../../gen/health/v1/health_pb.ts';
import { CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { type ModelSchema, ModelService, ModelStatus } from '../../gen/umpire/v1/model_service_pb.ts';
import { jsonOf, REQUEST_ID } from '../answer.ts';
import type { Check } from '../check.ts';
import { hasStatus, holds, matches, same } from '../expect.ts';
import type { ListedModel } from '../kit.ts';
import { Skipped } from '../outcome.ts';
import { callGrpc, frameOf, grpcMessage, grpcRefuses, retrySeconds, rpcOf } from '../rpc.ts';
import { CREATE_DECISION, grpcDecided, questionMessage, questionMessages } from '../rpc-decisions.ts';
import { wrongCatalogs } from './catalog-requests.ts';
import { wrongQuestions } from './decision-requests.ts';
import { RPC_REFUSAL, WRONG_KEYS } from './keys.ts';

// The RPCs that the checks call.
const LIST_MODELS = rpcOf(ModelService.method.listModels);
const GET_MODEL = rpcOf(ModelService.method.getModel);
const CREATE_CATALOG = rpcOf(CatalogService.method.createCatalog);
const GET_CATALOG = rpcOf(CatalogService.method.getCatalog);
const DELETE_CATALOG = rpcOf(CatalogService.method.deleteCatalog);
const CHECK_HEALTH = rpcOf(Health.method.check);

/** The statuses of models, as REST writes them. */
const STATUSES: Readonly<Record<number, string>> = {
  [ModelStatus.READY]: 'ready',
  [ModelStatus.UNAVAILABLE]: 'unavailable',
  [ModelStatus.DISABLED]: 'disabled',
};

/** A model's message as REST writes it. */
function listed({ id, status, limits }: MessageShape<typeof ModelSchema>): ListedModel {
  const { inputTokens = 0, candidateTokens = 0, choices = 0 } = limits ?? {};
  const counts = { input_tokens: inputTokens, candidate_tokens: candidateTokens, choices };
  return { id, status: STATUSES[status] ?? '', limits: counts };
}

/** The checks of the contract over gRPC. */
export const GRPC_CHECKS: readonly Check[] = [
  {
    id: 'grpc.decide',
    section: '11',
    promise: 'a decision by gRPC is that of REST, number for number',
    tried: 'a question with plain choices and one with odd choices, by both protocols',
    async run(kit) {
      for (const question of await questionMessages(kit)) {
        const wanted = await kit.decision(question);
        same('decision', grpcDecided(await callGrpc(kit, CREATE_DECISION, question)), wanted);
      }
    },
  },
  {
    id: 'grpc.request-id',
    section: '11',
    promise: 'answers by gRPC carry x-request-id, errors included',
    tried: 'a decision and a bad request',
    async run(kit) {
      for (const request of [await questionMessage(kit), {}]) {
        const { headers, trailers } = await callGrpc(kit, CREATE_DECISION, request);
        matches('x-request-id', headers['x-request-id'] ?? trailers['x-request-id'], REQUEST_ID);
      }
    },
  },
  {
    id: 'grpc.models',
    section: '11',
    promise: 'models by gRPC are those of REST',
    tried: 'ListModels, and GetModel of the model to decide with',
    async run(kit) {
      const wanted = (await kit.models()).map(({ id, status, limits }) => ({ id, status, limits }));
      const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
      const { data } = grpcMessage(await callGrpc(kit, LIST_MODELS, {}), LIST_MODELS);
      same('models', data.map(listed).sort(byId), [...wanted].sort(byId));
      const { id } = await kit.model();
      const { model } = grpcMessage(await callGrpc(kit, GET_MODEL, { model: id }), GET_MODEL);
      same('model', model?.id, id);
    },
  },
  {
    id: 'grpc.catalogs',
    section: '11',
    promise: 'a catalog created by gRPC is the same over REST, decides, and is gone everywhere once it is deleted',
    tried: 'CreateCatalog, GET, GetCatalog, CreateDecision with it, DeleteCatalog, GET',
    needs: ['key'],
    async run(kit) {
      const { key } = kit;
      const [id, question] = [kit.newCatalogId(), await questionMessage(kit)];
      const { model, choices, input, instruction } = question;
      grpcMessage(await callGrpc(kit, CREATE_CATALOG, { id, model, choices }, { key }), CREATE_CATALOG);
      same('choices over REST', jsonOf(await kit.catalog('GET', id)).choices, choices);
      const { catalog } = grpcMessage(await callGrpc(kit, GET_CATALOG, { id }, { key }), GET_CATALOG);
      same('choices', catalog?.choices, choices);
      const wanted = await kit.decision(question);
      same(
        'decision',
        grpcDecided(await callGrpc(kit, CREATE_DECISION, { model, input, instruction, catalog: id }, { key })),
        wanted,
      );
      grpcMessage(await callGrpc(kit, DELETE_CATALOG, { id }, { key }), DELETE_CATALOG);
      hasStatus(await kit.catalog('GET', id), 404);
    },
  },
  {
    id: 'grpc.invalid',
    section: '11',
    promise: 'a bad request is INVALID_ARGUMENT with the reason and the field in ErrorInfo',
    tried: 'every wrong question that REST is sent and a message can express',
    async run(kit) {
      for (const { request, status, ...refusal } of await wrongQuestions(kit)) {
        const code = status === 401 ? RPC_REFUSAL.code : 3;
        grpcRefuses(await callGrpc(kit, CREATE_DECISION, request), { code, ...refusal });
      }
    },
  },
  {
    id: 'grpc.invalid-catalogs',
    section: '11',
    promise: 'a bad catalog is INVALID_ARGUMENT with the reason and the field in ErrorInfo',
    tried: 'every wrong catalog that REST is sent and a message can express',
    needs: ['key'],
    async run(kit) {
      for (const { request, status: _, ...refusal } of await wrongCatalogs(kit)) {
        grpcRefuses(await callGrpc(kit, CREATE_CATALOG, request, { key: kit.key }), { code: 3, ...refusal });
      }
    },
  },
  {
    id: 'grpc.foreign-catalogs',
    section: '5',
    promise: 'another owner’s catalog looks exactly like one that does not exist, over gRPC as well',
    tried: 'GetCatalog and DeleteCatalog with the key of another owner, compared with an id that nobody has',
    needs: ['key', 'other-key'],
    async run(kit) {
      const { id: model } = await kit.model();
      const [foreign, missing] = [kit.newCatalogId(), kit.newCatalogId()];
      hasStatus(await kit.catalog('POST', { id: foreign, model, choices: ['a', 'b'] }), 201);
      const terms = { key: kit.otherKey };
      for (const call of [
        (id: string) => callGrpc(kit, GET_CATALOG, { id }, terms),
        (id: string) => callGrpc(kit, DELETE_CATALOG, { id }, terms),
      ]) {
        const messages = [];
        for (const id of [foreign, missing]) {
          const answer = await call(id);
          grpcRefuses(answer, { code: 5, reason: 'CATALOG_NOT_FOUND', param: 'id' });
          messages.push(decodeURIComponent(String(answer.trailers['grpc-message'])).replaceAll(id, 'ID'));
        }
        same('messages', messages[0], messages[1]);
      }
      hasStatus(await kit.catalog('GET', foreign), 200);
    },
  },
  {
    id: 'grpc.unreadable',
    section: '11',
    promise: 'a message that is not a protobuf is the caller’s fault, not the server’s',
    tried: 'a frame of bytes that end in the middle of a field',
    async run(kit) {
      const frame = frameOf(Uint8Array.of(0x0a, 0x7f, 0x41));
      grpcRefuses(await callGrpc(kit, CREATE_DECISION, {}, { frame }), { code: 3, reason: 'INVALID_MESSAGE' });
    },
  },
  {
    id: 'grpc.unauthenticated',
    section: '11',
    promise: 'a missing and a wrong key are UNAUTHENTICATED',
    tried: 'GetCatalog without a key, decisions with wrong ones',
    async run(kit) {
      grpcRefuses(await callGrpc(kit, GET_CATALOG, { id: 'any' }), RPC_REFUSAL);
      for (const authorization of WRONG_KEYS) {
        const answer = await callGrpc(kit, CREATE_DECISION, await questionMessage(kit), { headers: { authorization } });
        grpcRefuses(answer, RPC_REFUSAL);
      }
    },
  },
  {
    id: 'grpc.not-found',
    section: '11',
    promise: 'a model that does not exist is NOT_FOUND',
    tried: 'GetModel',
    async run(kit) {
      const refusal = { code: 5, reason: 'MODEL_NOT_FOUND', param: 'model' };
      grpcRefuses(await callGrpc(kit, GET_MODEL, { model: 'no-such-model' }), refusal);
    },
  },
  {
    id: 'grpc.unavailable',
    section: '11',
    promise: 'a model that is unavailable is UNAVAILABLE, and both RetryInfo and pushback say when to try again',
    tried: 'a decision by a model that the list shows as unavailable, if there is one',
    async run(kit) {
      const found = (await kit.models()).find(({ status }) => status === 'unavailable');
      if (found === undefined) throw new Skipped('no model is unavailable');
      const request = { ...(await questionMessage(kit)), model: found.id };
      const answer = await callGrpc(kit, CREATE_DECISION, request, { once: true });
      grpcRefuses(answer, { code: 14, reason: 'MODEL_UNAVAILABLE', param: 'model' });
      const seconds = retrySeconds(answer);
      holds(seconds !== undefined && seconds >= 1, `RetryInfo: ${seconds} s`);
      same('grpc-retry-pushback-ms', answer.trailers['grpc-retry-pushback-ms'], String(1000 * Number(seconds)));
    },
  },
  {
    id: 'grpc.unimplemented',
    section: '11',
    promise: 'a procedure that does not exist is UNIMPLEMENTED',
    tried: 'DecisionService/NoSuchMethod',
    async run(kit) {
      const path = `/${DecisionService.typeName}/NoSuchMethod`;
      grpcRefuses(await callGrpc(kit, { ...CREATE_DECISION, path }, {}), { code: 12, reason: 'UNIMPLEMENTED' });
    },
  },
  {
    id: 'grpc.deadline',
    section: '11',
    promise: 'a deadline that has passed is DEADLINE_EXCEEDED',
    tried: 'a decision with grpc-timeout: 1n',
    async run(kit) {
      const terms = { headers: { 'grpc-timeout': '1n' }, once: true };
      const { trailers } = await callGrpc(kit, CREATE_DECISION, await questionMessage(kit), terms);
      same('grpc-status', trailers['grpc-status'], '4');
    },
  },
  {
    id: 'grpc.health',
    section: '11',
    promise: 'grpc.health.v1.Health says SERVING for the whole server and for each service',
    tried: 'Check of "" and of the three services',
    async run(kit) {
      for (const service of ['', ...[DecisionService, ModelService, CatalogService].map(({ typeName }) => typeName)]) {
        const { status } = grpcMessage(await callGrpc(kit, CHECK_HEALTH, { service }), CHECK_HEALTH);
        same(`status of '${service}'`, status, HealthCheckResponse_ServingStatus.SERVING);
      }
    },
  },
  {
    id: 'grpc.health-unknown',
    section: '11',
    promise: 'the health of a service that does not exist is NOT_FOUND',
    tried: 'Check of no.such.Service',
    async run(kit) {
      const { trailers } = await callGrpc(kit, CHECK_HEALTH, { service: 'no.such.Service' });
      same('grpc-status', trailers['grpc-status'], '5');
    },
  },
];
