/**
 * Contract 2.2 to 2.4, 8 and 9: decisions of the real model beyond what the conformance kit tries: an independent
 * client, tokens, and what answers carry in their headers. 4.7, 4.8 and `grpc.health.v1.Health` on the same state:
 * live, ready, not ready, draining.
 */
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import type { ClientReadableStream } from '@grpc/grpc-js';
import test from 'ava';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { KEEP_ALIVE_TIMEOUT } from '../../src/wire/http/bounds.ts';
import { isError, json, VALID_BODY } from '../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { startKeyedService } from '../support/keys.ts';
import { modelsDir } from '../support/models-dir.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { scriptedService, startService } from '../support/service.ts';

interface Decision {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly output: {
    readonly choice: string;
    readonly confidence: number;
    readonly probabilities: Readonly<Record<string, number>>;
  };
  readonly usage: { readonly input_tokens: number };
}

const service = await startKeyedService({ UMPIRE_MODELS_DIR: modelsDir('minilm-l6') }, {});
test.after.always(() => service.stop());

const hundred = Array.from({ length: 100 }, (_, index) => `department number ${index}`);

test('Connect’s own client, over Connect and gRPC, in protobuf and JSON', async (t) => {
  const rest = json(await decide(service.port, VALID_BODY)) as unknown as Decision;
  for (const transport of [
    createConnectTransport({ baseUrl: service.url, httpVersion: '1.1', useBinaryFormat: true }),
    createConnectTransport({ baseUrl: service.url, httpVersion: '2', useBinaryFormat: true }),
    createConnectTransport({ baseUrl: service.url, httpVersion: '2', useBinaryFormat: false }),
    createGrpcTransport({ baseUrl: service.url }),
  ]) {
    let requestId: string | null = null;
    const { decision } = await createClient(DecisionService, transport).createDecision(
      { ...VALID_BODY, choices: [...VALID_BODY.choices] },
      { onHeader: (headers) => (requestId = headers.get('x-request-id')) },
    );
    t.like(decision, { object: 'decision', model: 'minilm-l6@r2' });
    t.is(decision?.output?.choice, rest.output.choice);
    t.is(decision?.output?.confidence, rest.output.confidence);
    t.deepEqual({ ...decision?.output?.probabilities }, rest.output.probabilities);
    t.is(decision?.usage?.inputTokens, rest.usage.input_tokens);
    t.regex(String(requestId), /^req_[A-Za-z0-9_-]+$/);
  }
});

test('usage counts instruction and input, whatever the choices are and however often it is asked', async (t) => {
  const { port } = service;
  const tokens = async (body: object): Promise<number> =>
    (json(await decide(port, { ...VALID_BODY, ...body })) as unknown as Decision).usage.input_tokens;
  const base = await tokens({});
  t.is(await tokens({}), base);
  t.is(await tokens({ choices: hundred }), base);
  t.is(await tokens({ input: `${VALID_BODY.input} again` }), base + 1);
  t.is(await tokens({ instruction: `${VALID_BODY.instruction} again` }), base + 1);
});

test('an input of exactly the limit is legal, and what was counted is what usage says', async (t) => {
  const { port } = service;
  const words = (count: number) => decide(port, { ...VALID_BODY, input: 'word '.repeat(count) });
  const [, tokens] = /have (\d+) tokens.* at most 500/.exec((await words(600)).text) ?? [];
  const room = 500 - (Number(tokens) - 600);
  const most = await words(room);
  t.is(most.status, 200, most.text);
  t.like(json(most), { usage: { input_tokens: 500 } });
  const refused = { status: 400, code: 'input_tokens_exceeded', param: 'input' };
  isError(t, await words(room + 1), { ...refused, message: /have 501 tokens/ });
  isError(t, await words(180_000), { ...refused, message: /more than \d+.* at most 500/ });
});

const ALWAYS = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'x-request-id'];

test('a decision', async (t) => {
  const { headers, text } = await decide(service.port, VALID_BODY);
  t.is(headers['content-type'], 'application/json');
  t.is(headers['content-length'], String(Buffer.byteLength(text)));
  t.deepEqual(Object.keys(headers).toSorted(), [...ALWAYS, 'x-umpire-languages']);
});

test('an idle connection is kept for longer than proxies keep theirs, and the answer says how long', async (t) => {
  t.true(KEEP_ALIVE_TIMEOUT > 60_000);
  const { headers } = await send(service.port, { path: '/health/live' });
  t.is(headers['keep-alive'], `timeout=${KEEP_ALIVE_TIMEOUT / 1000}`);
});

test('a decision for a key says where its time went; one without does not', async (t) => {
  const key = { authorization: `Bearer ${service.key}` };
  const { headers } = await send(service.port, { body: JSON.stringify(VALID_BODY), headers: key });
  t.regex(String(headers['server-timing']), /^queue;dur=\d+\.\d\d, tokenize;dur=\d+\.\d\d, infer;dur=\d+\.\d\d$/);
  t.deepEqual(Object.keys(headers).toSorted(), [...ALWAYS, 'server-timing', 'x-umpire-languages'].sort());
});

test('a body of characters beyond ASCII has its length in bytes', async (t) => {
  for (const choices of [['ja', 'größer 包裹'], Array.from({ length: 40 }, (_, index) => `größer 包裹 ${index}`)]) {
    const { headers, text } = await decide(service.port, { ...VALID_BODY, choices });
    t.is(headers['content-length'], String(Buffer.byteLength(text)));
  }
});

test('errors have no headers of a decision, and only those of their own', async (t) => {
  const { port } = service;
  const bad = await decide(port, {});
  for (const name of ['server-timing', 'retry-after', 'www-authenticate', 'allow', 'location'])
    t.is(bad.headers[name], undefined, name);
  const method = await send(port, { path: '/v1/decisions' });
  t.is(method.headers.allow, 'POST');
  t.is(method.headers['www-authenticate'], undefined);
});

test('nothing says what the server is made of', async (t) => {
  const { port } = service;
  for (const path of ['/v1/models', '/none', '/health/live']) {
    const { headers } = await send(port, { path });
    for (const name of ['server', 'x-powered-by']) t.is(headers[name], undefined);
  }
});

test('a caller’s own X-Request-ID is logged, cut, and not sent back', async (t) => {
  const own = `theirs-${'x'.repeat(500)}`;
  const { headers } = await decide(service.port, VALID_BODY, { 'x-request-id': own });
  t.regex(String(headers['x-request-id']), /^req_[A-Za-z0-9_-]+$/);
  const line = service.log.find(({ requestId }) => requestId === headers['x-request-id']);
  t.is(line?.callerRequestId, own.slice(0, 128));
});

const SERVICES = ['', 'umpire.v1.DecisionService', 'umpire.v1.ModelService', 'umpire.v1.CatalogService'];

test.serial('not ready: live all the same, and not serving by gRPC', async (t) => {
  const engine = createScriptedEngine();
  const service = await scriptedService(t, {}, engine);
  const { port } = service;
  t.is((await send(port, { path: '/health/ready?verbose=1' })).status, 200);
  const grpc = openGrpc(port);
  t.teardown(grpc.close);
  const check = async (service: string) =>
    (await callGrpc<{ status: string }>(grpc.health, 'Check', { service })).response?.status;
  const { trailers } = await callGrpc(grpc.health, 'Check', { service: 'nobody.Service' });
  t.like(errorDetails(trailers), { code: 5, reason: 'SERVICE_NOT_FOUND', domain: 'umpire' });

  engine.isReady = false;
  const unready = await send(port, { path: '/health/ready' });
  isError(t, unready, { status: 503, code: 'not_ready', param: null });
  t.regex(String(unready.headers['retry-after']), /^[1-9]/);
  t.is((await send(port, { path: '/health/ready', method: 'HEAD' })).status, 503);
  t.is((await send(port, { path: '/health/live' })).status, 200);
  for (const name of SERVICES) t.is(await check(name), 'NOT_SERVING', name);
  const list = await callGrpc<{ statuses: Record<string, { status: string }> }>(grpc.health, 'List', {});
  t.deepEqual(Object.keys(list.response?.statuses ?? {}).toSorted(), SERVICES.toSorted());
  t.is(list.response?.statuses['']?.status, 'NOT_SERVING');
});

test.serial('watchers hear of each change, and are let go when draining begins', async (t) => {
  const engine = createScriptedEngine();
  const service = await startService({ UMPIRE_DRAIN_DELAY: '1' }, { engine });
  const grpc = openGrpc(service.port);
  const open = (name: string): ClientReadableStream<{ status: string }> =>
    (grpc.health as never as { Watch: (request: object) => ClientReadableStream<{ status: string }> }).Watch({
      service: name,
    });
  const heard = (stream: ClientReadableStream<{ status: string }>) => {
    const statuses: string[] = [];
    let next: () => void = () => {};
    stream.on('data', ({ status }) => {
      statuses.push(status);
      next();
    });
    stream.on('error', () => {});
    const ended = new Promise<void>((resolve) => stream.on('end', resolve));
    const reach = async (count: number): Promise<void> => {
      while (statuses.length < count)
        await new Promise<void>((resolve) => {
          next = resolve;
        });
    };
    return { statuses, ended, reach };
  };
  const whole = heard(open(''));
  const decisions = heard(open('umpire.v1.DecisionService'));
  const unknown = heard(open('nobody.Service'));
  await Promise.all([whole.reach(1), decisions.reach(1), unknown.reach(1)]);
  engine.isReady = false;
  await Promise.all([whole.reach(2), decisions.reach(2)]);
  engine.isReady = true;
  await Promise.all([whole.reach(3), decisions.reach(3)]);
  const stopped = service.stop();
  await Promise.all([whole.ended, decisions.ended, unknown.ended]);
  t.deepEqual(whole.statuses, ['SERVING', 'NOT_SERVING', 'SERVING', 'NOT_SERVING']);
  t.deepEqual(decisions.statuses, whole.statuses);
  t.deepEqual(unknown.statuses, ['SERVICE_UNKNOWN']);
  grpc.close();
  await stopped;
});

test.serial('draining: unready at once, still serving, every answer closing its connection', async (t) => {
  const service = await startService({ UMPIRE_DRAIN_DELAY: '1' }, { engine: createScriptedEngine() });
  const { port } = service;
  const stopped = service.stop();
  const ready = await send(port, { path: '/health/ready' });
  isError(t, ready, { status: 503, code: 'draining', param: null });
  t.is(ready.headers.connection, 'close');
  t.is((await send(port, { path: '/health/live' })).status, 200);
  const decision = await decide(port, VALID_BODY);
  t.is(decision.status, 200);
  t.is(decision.headers.connection, 'close');
  for (const call of [{ path: '/none' }, { path: '/umpire.v1.ModelService/ListModels', body: '{}' }])
    t.is((await send(port, call)).headers.connection, 'close', call.path);
  await stopped;
  await t.throwsAsync(send(port, { path: '/health/live' }), { code: 'ECONNREFUSED' });
});
