/** Contract 12: Connect decides and refuses exactly as REST does. */
import { CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { jsonOf, objectAt } from '../answer.ts';
import type { Check } from '../check.ts';
import { hasStatus, matches, same } from '../expect.ts';
import type { Decided } from '../kit.ts';
import { callConnect, connectRefuses, rpcOf } from '../rpc.ts';
import { CREATE_DECISION, protoDecided, questionMessages } from '../rpc-decisions.ts';
import { wrongQuestions } from './decision-requests.ts';
import { wrongTexts } from './json-bodies.ts';
import { RPC_REFUSAL, WRONG_KEYS } from './keys.ts';

const GET_CATALOG = rpcOf(CatalogService.method.getCatalog);

/** The checks of the contract over the Connect protocol. */
export const CONNECT_CHECKS: readonly Check[] = [
  {
    id: 'connect.decide-json',
    section: '12',
    promise: 'a decision by Connect in JSON is that of REST, number for number',
    tried: 'a question with plain choices and one with odd choices, by both protocols',
    async run(kit) {
      for (const question of await questionMessages(kit)) {
        const wanted = await kit.decision(question);
        const answer = await callConnect(kit, CREATE_DECISION, { json: question });
        hasStatus(answer, 200);
        const { model, output, usage } = objectAt(jsonOf(answer), 'decision') as never as {
          readonly model: string;
          readonly output: Omit<Decided, 'inputTokens' | 'model'>;
          readonly usage: { readonly inputTokens: number };
        };
        same('decision', { ...output, model, inputTokens: usage?.inputTokens }, wanted);
      }
    },
  },
  {
    id: 'connect.decide-proto',
    section: '12',
    promise: 'a decision by Connect as a protobuf is that of REST, number for number',
    tried: 'a question with plain choices and one with odd choices, by both protocols',
    async run(kit) {
      for (const question of await questionMessages(kit)) {
        const wanted = await kit.decision(question);
        const answer = await callConnect(kit, CREATE_DECISION, { message: question });
        hasStatus(answer, 200);
        matches('Content-Type', answer.headers['content-type'], /^application\/proto$/);
        same('decision', protoDecided(answer.body), wanted);
      }
    },
  },
  {
    id: 'connect.invalid',
    section: '12',
    promise: 'a bad request is 400 invalid_argument with ErrorInfo',
    tried: 'every wrong question that REST is sent and a message can express',
    async run(kit) {
      for (const { request, status, ...refusal } of await wrongQuestions(kit)) {
        const code = status === 401 ? RPC_REFUSAL.code : 3;
        connectRefuses(await callConnect(kit, CREATE_DECISION, { json: request }), status, { code, ...refusal });
      }
    },
  },
  {
    id: 'connect.bodies',
    section: '12',
    promise: 'a body that is not a JSON object is refused as over REST',
    tried: 'the wrong bodies of REST',
    async run(kit) {
      for (const { body, reason, param } of wrongTexts(JSON.stringify(await kit.question()))) {
        const refusal = { code: 3, reason: reason === 'INVALID_JSON' ? 'INVALID_MESSAGE' : reason, ...param };
        connectRefuses(await kit.http1({ path: CREATE_DECISION.path, body }), 400, refusal);
      }
    },
  },
  {
    id: 'connect.unauthenticated',
    section: '12',
    promise: 'a missing and a wrong key are 401 unauthenticated, and the answer names the scheme',
    tried: 'GetCatalog without a key, decisions with wrong ones',
    async run(kit) {
      connectRefuses(await callConnect(kit, GET_CATALOG, { json: { id: 'any' } }), 401, RPC_REFUSAL);
      for (const authorization of WRONG_KEYS) {
        const answer = await kit.http1({ path: CREATE_DECISION.path, body: '{', headers: { authorization } });
        connectRefuses(answer, 401, RPC_REFUSAL);
        same('WWW-Authenticate', answer.headers['www-authenticate'], 'Bearer');
      }
    },
  },
  {
    id: 'connect.unknown-property',
    section: '12',
    promise: 'a property that the message does not have is 400, not ignored',
    tried: 'temperature beside a valid question',
    async run(kit) {
      const answer = await callConnect(kit, CREATE_DECISION, { json: { ...(await kit.question()), temperature: 1 } });
      hasStatus(answer, 400);
      same('code', jsonOf(answer).code, 'invalid_argument');
    },
  },
  {
    id: 'connect.unimplemented',
    section: '12',
    promise: 'a procedure that does not exist is 404 unimplemented',
    tried: 'DecisionService/NoSuchMethod',
    async run(kit) {
      const path = `/${DecisionService.typeName}/NoSuchMethod`;
      const refusal = { code: 12, reason: 'UNIMPLEMENTED' };
      connectRefuses(await callConnect(kit, { ...CREATE_DECISION, path }, { json: {} }), 404, refusal);
    },
  },
];
