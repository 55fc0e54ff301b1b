/**
 * gRPC requests that are wrong: always HTTP 200 with a status of the caller's fault and ErrorInfo, or an envelope where
 * it is no gRPC at all.
 */
import { connect } from 'node:http2';
import { Metadata } from '@grpc/grpc-js';
import test from 'ava';
import { envelopeFault, VALID_BODY } from '../../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../../support/grpc.ts';
import { DECIDE, frame, openSession, type RawRpcCall, sendGrpc, validMessage } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
const session = openSession(service.port);
test.after.always(async () => {
  session.destroy();
  await service.stop();
});

const bytes = (...values: readonly number[]): Buffer => frame(Buffer.from(values));
const timeout = (value: string): RawRpcCall => ({ headers: { 'grpc-timeout': value } });
const type = (value: string): object => ({ 'content-type': value });
const jsonCall = (text: string): RawRpcCall => ({
  headers: type('application/grpc+json') as never,
  body: frame(Buffer.from(text)),
});

type Fault = readonly [code: number, reason: string];
const INVALID: Fault = [3, 'INVALID_MESSAGE'];
const TOO_LARGE: Fault = [3, 'BODY_TOO_LARGE'];
const LATE: Fault = [4, 'DEADLINE_EXCEEDED'];
const UNIMPLEMENTED: Fault = [12, 'UNIMPLEMENTED'];
const MALFORMED: Fault = [3, 'MALFORMED_REQUEST'];
const fine = undefined;

const CASES: Readonly<Record<string, readonly [RawRpcCall, Fault | undefined]>> = {
  'a valid call': [{}, fine],
  'an unknown service': [{ path: '/umpire.v2.DecisionService/CreateDecision' }, UNIMPLEMENTED],
  'a REST path': [{ path: '/v1/decisions' }, UNIMPLEMENTED],
  'the root': [{ path: '/' }, UNIMPLEMENTED],
  'reflection, which is off': [{ path: '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo' }, UNIMPLEMENTED],
  'a path with a query': [{ path: `${DECIDE}?x=1` }, fine],
  'a frame that is cut off': [{ body: frame(validMessage, { length: validMessage.length + 10 }) }, INVALID],
  'half a frame head': [{ body: Buffer.from([0, 0]) }, INVALID],
  'no message': [{ body: Buffer.alloc(0) }, INVALID],
  'two messages': [{ body: Buffer.concat([frame(validMessage), frame(validMessage)]) }, INVALID],
  'an empty message': [{ body: bytes() }, [3, 'MISSING_FIELD']],
  'a length of 2 MiB': [{ body: frame(Buffer.alloc(10), { length: 2 << 20 }) }, TOO_LARGE],
  'a length of 4 GiB': [{ body: frame(Buffer.alloc(10), { length: 0xffffffff }) }, TOO_LARGE],
  'a compressed flag without a compression': [{ body: frame(validMessage, { flags: 1 }) }, INVALID],
  'flags that gRPC does not have': [{ body: frame(validMessage, { flags: 2 }) }, INVALID],
  'flags of a second message': [
    { body: Buffer.concat([frame(validMessage), frame(validMessage, { flags: 2 })]) },
    INVALID,
  ],
  'a deadline of 0 ns': [timeout('0n'), LATE],
  'a deadline of 0 s': [timeout('0S'), LATE],
  'a deadline of 0 h': [timeout('0H'), LATE],
  'a deadline of 11,000 years': [timeout('99999999H'), fine],
  'a deadline past 2^31 ms': [timeout('99999999S'), fine],
  'nine digits': [timeout('999999999S'), MALFORMED],
  'no unit': [timeout('1'), MALFORMED],
  'an unknown unit': [timeout('1x'), MALFORMED],
  'a negative deadline': [timeout('-1S'), MALFORMED],
  'half a second': [timeout('0.5S'), MALFORMED],
  'an empty deadline': [timeout(''), MALFORMED],
  'invalid UTF-8': [{ body: bytes(0x0a, 2, 0xff, 0xfe) }, INVALID],
  'another wire type': [{ body: bytes(0x08, 1) }, INVALID],
  'field number 0': [{ body: bytes(0, 1) }, INVALID],
  'a length past the end': [{ body: bytes(0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f) }, INVALID],
  'half a million groups': [{ body: frame(Buffer.alloc(1 << 19, 0x33)) }, INVALID],
  'an unknown field': [{ body: frame(Buffer.concat([validMessage, Buffer.from([0xfa, 0x3f, 1, 65])])) }, fine],
  'JSON with an unknown field': [jsonCall('{"temperature":1}'), [3, 'UNKNOWN_FIELD']],
  'JSON of a wrong type': [jsonCall('{"model":1}'), [3, 'INVALID_TYPE']],
  'JSON, 100,000 levels': [jsonCall(`{"model":${'['.repeat(100_000)}`), [3, 'INVALID_TYPE']],
  'JSON that is none': [jsonCall('{'), INVALID],
  'a bad key and a broken message': [
    { headers: { authorization: 'Bearer x' }, body: bytes(0) },
    [16, 'AUTHENTICATION_REQUIRED'],
  ],
  'a health check of garbage': [{ path: '/grpc.health.v1.Health/Check', body: bytes(0x0a, 9) }, INVALID],
};

for (const [what, [call, fault]] of Object.entries(CASES)) {
  test(what, async (t) => {
    const answer = await sendGrpc(session, call);
    t.is(answer.status, 200, answer.body.toString());
    t.regex(String(answer.headers['content-type']), /^application\/grpc/);
    t.regex(String(answer.headers['x-request-id']), /^req_/);
    if (fault === undefined) {
      t.is(answer.trailers['grpc-status'], '0', String(answer.trailers['grpc-message']));
      return;
    }
    const [code, reason] = fault;
    t.is(answer.trailers['grpc-status'], String(code), String(answer.trailers['grpc-message']));
    const trailers = Metadata.fromHttp2Headers(answer.trailers);
    t.like(errorDetails(trailers), { code, reason, domain: 'umpire' });
  });
}

for (const contentType of [
  'application/grpc-web',
  'application/grpc-web+proto',
  'application/grpc-web-text',
  'application/grpc+x',
  'application/grpcx',
]) {
  test(`${contentType} is not served`, async (t) => {
    const { status, headers, body } = await sendGrpc(session, { headers: type(contentType) as never });
    t.is(status, 415);
    t.is(envelopeFault({ status, headers, text: body.toString() }), undefined);
  });
}

test('two keys are refused as one that is wrong is', async (t) => {
  const session = connect(service.url, { strictSingleValueFields: false } as object);
  const raw = [':method', 'POST', ':path', DECIDE, ':scheme', 'http', ':authority', 'a', 'te', 'trailers'];
  const stream = session.request([
    ...raw,
    'content-type',
    'application/grpc',
    'authorization',
    'Bearer a',
    'authorization',
    'Bearer b',
  ] as never);
  stream.end(frame(validMessage));
  const headers = await new Promise<Record<string, string>>((resolve, reject) => {
    stream.on('response', (received) => resolve(received as never));
    stream.on('error', reject);
  });
  t.is(String(headers[':status']), '200');
  t.is(headers['grpc-status'], '16');
  t.like(errorDetails(Metadata.fromHttp2Headers(headers)), { code: 16, reason: 'AUTHENTICATION_REQUIRED' });
  session.destroy();
});

test('a GET is not a call', async (t) => {
  const { status, headers, body } = await sendGrpc(session, { headers: { ':method': 'PUT' } });
  t.is(status, 405);
  t.is(envelopeFault({ status, headers, text: body.toString() }), undefined);
});

test('the session outlives all that was wrong with its calls', async (t) => {
  for (let index = 0; index < 300; index += 1) {
    const call = Object.values(CASES)[index % 20] as readonly [RawRpcCall, unknown];
    await sendGrpc(session, call[0]);
  }
  t.is((await sendGrpc(session)).trailers['grpc-status'], '0');
  t.false(session.closed);
});

test('a flood is refused in one frame each, unread, and the session outlives it', async (t) => {
  const crowded = await startService({}, { engine: { ...createScriptedEngine(), crowded: () => 7 } });
  const flooding = openSession(crowded.port);
  t.teardown(async () => {
    flooding.destroy();
    await crowded.stop();
  });
  const grpc = openGrpc(crowded.port);
  const { error, trailers: status } = await callGrpc(grpc.decisions, 'CreateDecision', VALID_BODY);
  grpc.close();
  t.is(error?.code, 14);
  t.like(errorDetails(status), { reason: 'OVERLOADED', domain: 'umpire' });
  for (let round = 0; round < 30; round++) {
    const answers = await Promise.all(Array.from({ length: 90 }, () => sendGrpc(flooding)));
    for (const { status, headers, trailers, body } of answers) {
      t.is(status, 200);
      t.is(headers['grpc-status'], '14');
      t.is(headers['grpc-retry-pushback-ms'], '7000');
      t.is(trailers, headers, 'there is nothing but the first frame');
      t.is(body.length, 0);
    }
  }
  t.false(flooding.destroyed);
});

test('messages read as they were written, not percent-encoded', async (t) => {
  const grpc = openGrpc(service.port);
  const { error, trailers } = await callGrpc(grpc.models, 'GetModel', { model: 'none' });
  t.is(error?.details, errorDetails(trailers).message);
  t.notRegex(String(error?.details), /%/);
  grpc.close();
});
