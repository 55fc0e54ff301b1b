/** Internal callers: Connect decides and refuses exactly as REST does. */
import { CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { jsonOf, objectAt } from '../answer.ts';
import type { Check } from '../check.ts';
import { hasStatus, matches, same } from '../expect.ts';
import type { Decided } from '../kit.ts';
import { callConnect, connectRefuses, rpcOf } from '../rpc.ts';
import { CREATE_DECISION, protoDecided, questionMessage } from '../rpc-decisions.ts';

const GET_CATALOG = rpcOf(CatalogService.method.getCatalog);
const BOTH_SENT = { code: 3, reason: 'CHOICES_OR_CATALOG', param: 'choices' } as const;
const KEY_MISSING = { code: 16, reason: 'AUTHENTICATION_REQUIRED' } as const;

/** The contract over the Connect protocol. */
export const CONNECT_CHECKS: readonly Check[] = [
  {
    id: 'connect.decide-json',
    section: '12',
    promise: 'a decision by Connect in JSON is that of REST, number for number',
    tried: 'one question by both',
    async run(kit) {
      const question = await questionMessage(kit);
      const wanted = kit.decided(await kit.decide(question));
      const answer = await callConnect(kit, CREATE_DECISION, { json: question });
      hasStatus(answer, 200);
      const { model, output, usage } = objectAt(jsonOf(answer), 'decision') as never as {
        readonly model: string;
        readonly output: Omit<Decided, 'inputTokens' | 'model'>;
        readonly usage: { readonly inputTokens: number };
      };
      same('decision', { ...output, model, inputTokens: usage?.inputTokens }, wanted);
    },
  },
  {
    id: 'connect.decide-proto',
    section: '12',
    promise: 'a decision by Connect as a protobuf is that of REST, number for number',
    tried: 'one question by both',
    async run(kit) {
      const question = await questionMessage(kit);
      const wanted = kit.decided(await kit.decide(question));
      const answer = await callConnect(kit, CREATE_DECISION, { message: question });
      hasStatus(answer, 200);
      matches('Content-Type', answer.headers['content-type'], /^application\/proto$/);
      same('decision', protoDecided(answer.body), wanted);
    },
  },
  {
    id: 'connect.invalid',
    section: '12',
    promise: 'a bad request is 400 invalid_argument with ErrorInfo',
    tried: 'choices and catalog together',
    async run(kit) {
      const json = { ...(await kit.question()), catalog: 'c' };
      connectRefuses(await callConnect(kit, CREATE_DECISION, { json }), 400, BOTH_SENT);
    },
  },
  {
    id: 'connect.unauthenticated',
    section: '12',
    promise: 'a missing key is 401 unauthenticated',
    tried: 'GetCatalog without a key',
    async run(kit) {
      connectRefuses(await callConnect(kit, GET_CATALOG, { json: { id: 'any' } }), 401, KEY_MISSING);
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
