/**
 * Contract 2.8 and 7: failures that are the service's own, in every protocol: status, type, code, and
 * when to try again.
 */
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { ERROR_TABLE, type ErrorReason } from '../../src/domain/errors.ts';
import {
  DeadlineTooShort,
  EngineClosing,
  EngineFailed,
  EngineOverloaded,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../../src/engine/errors.ts';
import { StoreCorrupt, StoreUnavailable } from '../../src/stores/stores.ts';
import { type ExpectedError, isError, json, VALID_BODY } from '../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { startKeyedService } from '../support/keys.ts';
import { createScriptedEngine, type Script } from '../support/scripted-engine.ts';

const SECRET = 'the-secret-of-an-exception';

/** What is thrown, what REST says of it, and after how many seconds every protocol asks for another try. */
type Failure = readonly [script: Script, rest: ExpectedError, retry?: number];

const fails =
  (error: () => unknown): Script =>
  () => {
    throw error();
  };
const serverError = (code: string, status = 503): ExpectedError => ({
  ...{ status, code, param: null },
  type: 'server_error',
});

const FAILURES: Readonly<Record<string, Failure>> = {
  overloaded: [fails(() => new EngineOverloaded(7)), serverError('overloaded'), 7],
  unavailable: [
    fails(() => new ModelUnavailable(SECRET, 3)),
    { status: 503, code: 'model_unavailable', param: 'model', type: 'model_error' },
    3,
  ],
  late: [fails(() => new JobDeadlinePassed()), serverError('deadline_exceeded'), 1],
  'deadline too short': [
    fails(() => new DeadlineTooShort(713.2, 49.96)),
    {
      ...serverError('deadline_exceeded'),
      message: /^this takes about 0\.71 s, and the caller's deadline leaves 0\.05 s; allow more time$/,
    },
  ],
  closing: [fails(() => new EngineClosing()), serverError('draining'), 1],
  'interrupted twice': [fails(() => new EngineFailed(SECRET)), serverError('overloaded'), 1],
  'a bug': [fails(() => new Error(SECRET)), serverError('internal', 500)],
  'a bug that throws no error': [() => Promise.reject(SECRET), serverError('internal', 500)],
  'probabilities that are none': [
    ({ choices }) => ({
      kind: 'scored',
      probabilities: new Float64Array(choices.length).fill(Number.NaN),
      inputTokens: 1,
      timings: { queue: 0, tokenize: 0, infer: 0 },
    }),
    serverError('internal', 500),
  ],
};

const engine = createScriptedEngine();
// The input names the failure, so that tests can run side by side.
engine.script = (job, terms) => (FAILURES[job.input] as Failure)[0](job, terms);

let keysFail: Error | undefined;

const service = await startKeyedService({}, { engine }, (stores) => ({
  ...stores,
  keys: {
    ...stores.keys,
    find: (hash, budget) => (keysFail === undefined ? stores.keys.find(hash, budget) : Promise.reject(keysFail)),
  },
}));
const grpc = openGrpc(service.port);
test.after.always(async () => {
  grpc.close();
  await service.stop();
});

for (const [what, [, rest, retry]] of Object.entries(FAILURES)) {
  test(what, async (t) => {
    const reason = rest.code.toUpperCase() as ErrorReason;
    const code = status[ERROR_TABLE[reason].status];
    const body = { ...VALID_BODY, input: what };
    const answer = await decide(service.port, body);
    isError(t, answer, rest);
    t.is(answer.headers['retry-after'], retry === undefined ? undefined : String(retry));
    t.notRegex(answer.text, new RegExp(SECRET));

    const overConnect = await send(service.port, {
      path: '/umpire.v1.DecisionService/CreateDecision',
      body: JSON.stringify(body),
    });
    t.is(json(overConnect).code, ERROR_TABLE[reason].status.toLowerCase());
    t.regex(String(overConnect.headers['x-request-id']), /^req_/);
    t.is(overConnect.headers['retry-after'], retry === undefined ? undefined : String(retry));
    t.notRegex(overConnect.text, new RegExp(SECRET));

    const { error, trailers, headers } = await callGrpc(grpc.decisions, 'CreateDecision', body);
    t.is(error?.code, code);
    t.notRegex(String(error?.details), new RegExp(SECRET));
    const details = errorDetails(trailers);
    t.like(details, { code, reason, param: rest.param, domain: 'umpire', message: error?.details ?? '' });
    t.is(details.retrySeconds, retry);
    t.deepEqual(trailers.get('grpc-retry-pushback-ms'), retry === undefined ? [] : [String(retry * 1000)]);
    t.regex(String(headers.get('x-request-id')[0] ?? trailers.get('x-request-id')[0]), /^req_/);
  });
}

test('a bug is logged with its message under the id that the caller was given', async (t) => {
  const answer = await decide(service.port, { ...VALID_BODY, input: 'a bug' });
  const id = answer.headers['x-request-id'];
  const line = service.log.find(({ requestId }) => requestId === id);
  t.like(line, { level: 'error', status: 500, reason: 'INTERNAL', route: '/v1/decisions' });
  t.regex(JSON.stringify(line?.err), new RegExp(SECRET));
});

test.serial('keys that cannot be looked up are 503, never 401, and stop nobody who sends none', async (t) => {
  const headers = { authorization: `Bearer ${service.key}` };
  keysFail = new StoreUnavailable('away');
  const away = await decide(service.port, VALID_BODY, headers);
  isError(t, away, serverError('store_unavailable'));
  t.regex(String(away.headers['retry-after']), /^[1-9]/);
  const { error, trailers } = await callGrpc(grpc.decisions, 'CreateDecision', VALID_BODY, { metadata: headers });
  t.is(error?.code, 14);
  t.like(errorDetails(trailers), { reason: 'STORE_UNAVAILABLE' });
  isError(t, await decide(service.port, { ...VALID_BODY, input: 'overloaded' }), serverError('overloaded'));
  keysFail = new StoreCorrupt('unreadable');
  isError(t, await decide(service.port, VALID_BODY, headers), serverError('storage_corrupt', 500));
  keysFail = undefined;
});
