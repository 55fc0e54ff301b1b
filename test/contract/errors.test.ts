/**
 * Contract 2.8 and 7: failures that are the service's own, in every protocol: status, type, code, and
 * when to try again.
 */
import test from 'ava';
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

interface Failure {
  readonly script: Script;
  readonly rest: ExpectedError;
  readonly grpc: number;
  readonly connect: string;
  readonly retry?: number;
}

const fails =
  (error: () => Error): Script =>
  () => {
    throw error();
  };
const serverError = (code: string, status = 503): ExpectedError => ({
  status,
  code,
  param: null,
  type: 'server_error',
});

const FAILURES: Readonly<Record<string, Failure>> = {
  overloaded: {
    script: fails(() => new EngineOverloaded(7)),
    rest: serverError('overloaded'),
    grpc: 14,
    connect: 'unavailable',
    retry: 7,
  },
  unavailable: {
    script: fails(() => new ModelUnavailable(SECRET, 3)),
    rest: { status: 503, code: 'model_unavailable', param: 'model', type: 'model_error' },
    grpc: 14,
    connect: 'unavailable',
    retry: 3,
  },
  late: {
    script: fails(() => new JobDeadlinePassed()),
    rest: serverError('deadline_exceeded'),
    grpc: 4,
    connect: 'deadline_exceeded',
    retry: 1,
  },
  'deadline too short': {
    script: fails(() => new DeadlineTooShort(713.2, 49.96)),
    rest: {
      ...serverError('deadline_exceeded'),
      message: /^this takes about 0\.71 s, and the caller's deadline leaves 0\.05 s; allow more time$/,
    },
    grpc: 4,
    connect: 'deadline_exceeded',
  },
  closing: {
    script: fails(() => new EngineClosing()),
    rest: serverError('draining'),
    grpc: 14,
    connect: 'unavailable',
    retry: 1,
  },
  'interrupted twice': {
    script: fails(() => new EngineFailed(SECRET)),
    rest: serverError('overloaded'),
    grpc: 14,
    connect: 'unavailable',
    retry: 1,
  },
  'a bug': {
    script: fails(() => new Error(SECRET)),
    rest: serverError('internal', 500),
    grpc: 13,
    connect: 'internal',
  },
  'a bug that throws no error': {
    script: () => Promise.reject(SECRET),
    rest: serverError('internal', 500),
    grpc: 13,
    connect: 'internal',
  },
  'probabilities that are none': {
    script: ({ choices }) => ({
      kind: 'scored',
      probabilities: new Float64Array(choices.length).fill(Number.NaN),
      inputTokens: 1,
      timings: { queue: 0, tokenize: 0, infer: 0 },
    }),
    rest: serverError('internal', 500),
    grpc: 13,
    connect: 'internal',
  },
};

const engine = createScriptedEngine();
// The input names the failure, so that tests can run side by side.
engine.script = (job, terms) => (FAILURES[job.input] as Failure).script(job, terms);

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

for (const [what, { rest, grpc: code, connect, retry }] of Object.entries(FAILURES)) {
  test(what, async (t) => {
    const body = { ...VALID_BODY, input: what };
    const answer = await decide(service.port, body);
    isError(t, answer, rest);
    t.is(answer.headers['retry-after'], retry === undefined ? undefined : String(retry));
    t.notRegex(answer.text, new RegExp(SECRET));

    const overConnect = await send(service.port, {
      path: '/umpire.v1.DecisionService/CreateDecision',
      body: JSON.stringify(body),
    });
    t.is(json(overConnect).code, connect);
    t.regex(String(overConnect.headers['x-request-id']), /^req_/);
    t.is(overConnect.headers['retry-after'], retry === undefined ? undefined : String(retry));
    t.notRegex(overConnect.text, new RegExp(SECRET));

    const { error, trailers, headers } = await callGrpc(grpc.decisions, 'CreateDecision', body);
    t.is(error?.code, code);
    t.notRegex(String(error?.details), new RegExp(SECRET));
    const details = errorDetails(trailers);
    t.like(details, {
      code,
      reason: rest.code.toUpperCase(),
      param: rest.param,
      domain: 'umpire',
      message: error?.details ?? '',
    });
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
