/** Contract 2.9: `X-Request-ID` on every response there is, minted here, unique. */
import anyTest, { type TestFn } from 'ava';
import type { Answer } from '../support/answers.ts';
import { validBody } from '../support/answers.ts';
import { callGrpc, openGrpc } from '../support/grpc.ts';
import { decide, openSession, send, sendH2, sendRaw } from '../support/http.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService, type TestService } from '../support/service.ts';

const test = anyTest as TestFn<{ service: TestService }>;

test.before(async (t) => {
  t.context = { service: await startService({}, { engine: createScriptedEngine() }) };
});
test.after.always(({ context: { service } }) => service.stop());

const PATTERN = /^req_[A-Za-z0-9_-]+$/;
const raw =
  (text: string) =>
  async (port: number): Promise<Answer> =>
    (await sendRaw(port, text)).answers[0] as Answer;

const requests: Readonly<Record<string, readonly [number, (port: number) => Promise<Answer>]>> = {
  'a decision': [200, (port) => decide(port, validBody)],
  'a bad decision': [400, (port) => decide(port, {})],
  'a bad key': [401, (port) => decide(port, validBody, { authorization: 'Bearer x' })],
  models: [200, (port) => send(port, { path: '/v1/models' })],
  HEAD: [200, (port) => send(port, { path: '/v1/models', method: 'HEAD' })],
  'a HEAD of nothing': [404, (port) => send(port, { path: '/v1/none', method: 'HEAD' })],
  'no such model': [404, (port) => send(port, { path: '/v1/models/none' })],
  'no such path': [404, (port) => send(port, { path: '/none' })],
  'a wrong method': [405, (port) => send(port, { path: '/v1/models', method: 'DELETE' })],
  'a wrong type': [415, (port) => send(port, { body: '{}', headers: { 'content-type': 'text/plain' } })],
  live: [200, (port) => send(port, { path: '/health/live' })],
  ready: [200, (port) => send(port, { path: '/health/ready' })],
  'a health path and a wrong method': [405, (port) => send(port, { path: '/health/live', method: 'POST' })],
  'a wrong Expect': [417, (port) => send(port, { body: '{}', headers: { expect: 'the-spanish-inquisition' } })],
  Connect: [200, (port) => send(port, { path: '/umpire.v1.ModelService/ListModels', body: '{}' })],
  'Connect, refused': [400, (port) => send(port, { path: '/umpire.v1.DecisionService/CreateDecision', body: '{}' })],
  'Connect, unknown': [404, (port) => send(port, { path: '/umpire.v1.DecisionService/None', body: '{}' })],
  'Connect, a wrong type': [
    415,
    (port) =>
      send(port, { path: '/umpire.v1.ModelService/ListModels', body: '{}', headers: { 'content-type': 'text/plain' } }),
  ],
  'Connect, a wrong method': [
    405,
    (port) => send(port, { path: '/umpire.v1.DecisionService/CreateDecision', method: 'PUT' }),
  ],
  'not HTTP': [400, raw('hello\r\n\r\n')],
  'two hosts': [400, raw('GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n')],
  'no host': [400, raw('GET /v1/models HTTP/1.1\r\n\r\n')],
  'large headers': [431, raw(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)],
  'an unknown method': [400, raw('BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n')],
};

for (const [what, [status, request]] of Object.entries(requests)) {
  test(what, async (t) => {
    const { port } = t.context.service;
    const [first, second] = [await request(port), await request(port)];
    t.is(first?.status, status, first?.text);
    t.regex(String(first?.headers['x-request-id']), PATTERN);
    t.regex(String(second?.headers['x-request-id']), PATTERN);
    t.not(first?.headers['x-request-id'], second?.headers['x-request-id']);
  });
}

test('over HTTP/2', async (t) => {
  const session = openSession(t.context.service.port);
  for (const call of [
    { body: JSON.stringify(validBody) },
    { path: '/none' },
    { path: '/health/ready' },
    { method: 'DELETE' },
  ])
    t.regex(String((await sendH2(session, call)).headers['x-request-id']), PATTERN);
  session.close();
});

test('over gRPC, on answers and errors', async (t) => {
  const grpc = openGrpc(t.context.service.port);
  for (const request of [validBody, {}]) {
    const { headers, trailers } = await callGrpc(grpc.decisions, 'CreateDecision', request);
    t.regex(String(headers.get('x-request-id')[0] ?? trailers.get('x-request-id')[0]), PATTERN);
  }
  grpc.close();
});

test('a caller’s own is logged, cut, and not sent back', async (t) => {
  const { service } = t.context;
  const own = `theirs-${'x'.repeat(500)}`;
  const answer = await decide(service.port, validBody, { 'x-request-id': own });
  t.regex(String(answer.headers['x-request-id']), PATTERN);
  const line = service.log.find(({ requestId }) => requestId === answer.headers['x-request-id']);
  t.is(line?.callerRequestId, own.slice(0, 128));
});
