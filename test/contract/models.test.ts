/** Contract 2.5, 2.6, 4.2 and 4.3: of model discovery what takes models of several revisions and statuses. */
import test from 'ava';
import { isError, json } from '../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService } from '../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
const grpc = openGrpc(service.port);
test.after.always(async () => {
  grpc.close();
  await service.stop();
});

const LIMITS = { input_tokens: 500, candidate_tokens: 128, choices: 300 };
const described = (id: string, status: string, choices = 300): object => ({
  id,
  object: 'model',
  owned_by: 'umpire',
  status,
  limits: { ...LIMITS, choices },
});

test('the list has each model once, with its default revision’s limits', async (t) => {
  const answer = await send(service.port, { path: '/v1/models' });
  t.is(answer.status, 200);
  t.is(answer.headers['content-type'], 'application/json');
  t.deepEqual(json(answer), {
    object: 'list',
    data: [described('gone', 'unavailable'), described('minilm-l6', 'ready'), described('off', 'disabled')],
  });
});

test('a model by its id, and each of its revisions', async (t) => {
  const get = async (name: string): Promise<unknown> => {
    const answer = await send(service.port, { path: `/v1/models/${name}` });
    t.is(answer.status, 200, answer.text);
    return json(answer);
  };
  t.deepEqual(await get('minilm-l6'), described('minilm-l6', 'ready'));
  t.deepEqual(await get('minilm-l6@r1'), described('minilm-l6', 'ready'));
  t.deepEqual(await get('minilm-l6@r2'), described('minilm-l6', 'ready', 10));
  t.deepEqual(await get('minilm-l6%40r2'), described('minilm-l6', 'ready', 10));
  t.deepEqual(await get('%6dinilm-l6'), described('minilm-l6', 'ready'));
  t.deepEqual(await get('gone'), described('gone', 'unavailable'));
  t.deepEqual(await get('off'), described('off', 'disabled'));
});

test('over gRPC', async (t) => {
  const { models } = grpc;
  const one = await callGrpc(models, 'GetModel', { model: 'minilm-l6@r2' });
  t.like(one.response, { model: { id: 'minilm-l6', limits: { ...LIMITS, choices: 10 } } });
  for (const model of ['', '__proto__']) {
    const { error, trailers } = await callGrpc(models, 'GetModel', { model });
    t.is(error?.code, 5);
    t.like(errorDetails(trailers), { reason: 'MODEL_NOT_FOUND', param: 'model', domain: 'umpire', code: 5 });
  }
});

test('a decision names either form; a revision’s own limits hold; the answer names the revision', async (t) => {
  const { port } = service;
  const ask = (model: string, count = 3) =>
    decide(port, {
      model,
      input: 'x',
      instruction: 'y',
      choices: Array.from({ length: count }, (_, index) => `c${index}`),
    });
  t.like(json(await ask('minilm-l6')), { model: 'minilm-l6@r1' });
  t.like(json(await ask('minilm-l6@r2')), { model: 'minilm-l6@r2' });
  isError(t, await ask('minilm-l6@r2', 11), {
    status: 400,
    code: 'too_many_choices',
    param: 'choices',
    message: /11 .* 10/,
  });
});
