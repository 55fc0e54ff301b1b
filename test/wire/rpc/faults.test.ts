/**
 * RPCs that are wrong: over Connect the protocol's error with ErrorInfo and never a 5xx, over gRPC HTTP 200 with a
 * status of the caller's fault and ErrorInfo, or an envelope where it is neither.
 */
import { connect } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { Metadata, status } from '@grpc/grpc-js';
import test from 'ava';
import { ERROR_TABLE, type ErrorReason } from '../../../src/domain/errors.ts';
import { envelopeFault, isError, json, VALID_BODY } from '../../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../../support/grpc.ts';
import {
  type Call,
  DECIDE,
  frame,
  openSession,
  type RawRpcCall,
  send,
  sendGrpc,
  validMessage,
} from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
const session = openSession(service.port);
test.after.always(async () => {
  session.destroy();
  await service.stop();
});

const text = JSON.stringify(VALID_BODY);
const PROTO = { 'content-type': 'application/proto' };
const GZIP = { 'content-encoding': 'gzip' };
const connectTimeout = (value: string): Call => ({ headers: { 'connect-timeout-ms': value }, body: text });
const models = (query: string): Call => ({ method: 'GET', path: `/umpire.v1.ModelService/ListModels${query}` });

/** What Connect answers; its code follows from the reason. */
type ConnectFault = readonly [status: number, reason: ErrorReason];

const CONNECT_CASES: Readonly<Record<string, readonly [Call, ConnectFault | 200]>> = {
  'names in camelCase, which Connect’s JSON allows': [
    { path: '/umpire.v1.ModelService/GetModel', body: '{"model":"minilm-l6"}' },
    200,
  ],
  'a truncated protobuf': [{ headers: PROTO, body: validMessage.subarray(0, -4) }, [400, 'INVALID_MESSAGE']],
  'an empty protobuf': [{ headers: PROTO, body: Buffer.alloc(0) }, [400, 'MISSING_FIELD']],
  'a wrong type': [{ body: '{"model":1}' }, [400, 'INVALID_TYPE']],
  'null, which protobuf’s JSON takes for an absent field': [
    { body: JSON.stringify({ ...VALID_BODY, input: null }) },
    [400, 'INVALID_TYPE'],
  ],
  'invalid UTF-8': [
    { body: Buffer.from(JSON.stringify({ ...VALID_BODY, input: 'x\xff' }), 'latin1') },
    [400, 'INVALID_MESSAGE'],
  ],
  'a byte order mark, compressed': [{ headers: GZIP, body: gzipSync(`\ufeff${text}`) }, [400, 'INVALID_MESSAGE']],
  '301 choices in protobuf, and 5,000': [
    { headers: PROTO, body: Buffer.concat([validMessage, Buffer.alloc(10_000, Buffer.from([0x22, 0x00]))]) },
    [400, 'INVALID_CHOICES'],
  ],
  '5,000 unknown fields in protobuf': [
    { headers: PROTO, body: Buffer.concat([validMessage, Buffer.alloc(10_000, Buffer.from([0x78, 0x01]))]) },
    [400, 'INVALID_MESSAGE'],
  ],
  'a deadline of 0': [connectTimeout('0'), [504, 'DEADLINE_EXCEEDED']],
  'a deadline of 10 digits': [connectTimeout('9999999999'), 200],
  'a deadline of 11 digits': [connectTimeout('99999999999'), [400, 'MALFORMED_REQUEST']],
  'a negative deadline': [connectTimeout('-1'), [400, 'MALFORMED_REQUEST']],
  'a deadline in words': [connectTimeout('soon'), [400, 'MALFORMED_REQUEST']],
  'half a millisecond': [connectTimeout('0.5'), [400, 'MALFORMED_REQUEST']],
  'an unknown service': [{ path: '/umpire.v9.DecisionService/CreateDecision', body: text }, [404, 'UNIMPLEMENTED']],
  'a GET of a procedure without side effects': [models('?encoding=json&message={}'), 200],
  'a GET of a protobuf in base64': [models('?encoding=proto&base64=1&message='), 200],
  'a GET of a broken message': [models('?encoding=json&message='), [400, 'INVALID_MESSAGE']],
  'a GET of base64 that is none': [models('?encoding=json&base64=1&message=%FF'), [400, 'INVALID_MESSAGE']],
  'a GET of an unknown compression': [
    models('?encoding=json&message={}&compression=zip'),
    [415, 'UNSUPPORTED_ENCODING'],
  ],
  'a GET of a gzip bomb': [
    models(
      `?encoding=json&compression=gzip&base64=1&message=${gzipSync(Buffer.alloc(4 << 20, 32)).toString('base64url')}`,
    ),
    [413, 'BODY_TOO_LARGE'],
  ],
};

for (const [what, [call, expected]] of Object.entries(CONNECT_CASES)) {
  test(`Connect: ${what}`, async (t) => {
    const answer = await send(service.port, { path: DECIDE, ...call });
    t.regex(String(answer.headers['x-request-id']), /^req_/);
    const [status, reason] = expected === 200 ? [200] : expected;
    t.is(answer.status, status, answer.text);
    if (reason === undefined) return;
    const code = ERROR_TABLE[reason].status.toLowerCase();
    t.is(answer.headers['content-type'], 'application/json');
    t.like(json(answer), { code, details: [{ type: 'google.rpc.ErrorInfo', debug: { reason, domain: 'umpire' } }] });
  });
}

test('what is no Connect at all gets the envelope', async (t) => {
  const { port } = service;
  const unsupported = { status: 415, code: 'unsupported_media_type', param: null };
  for (const contentType of [
    'application/connect+json',
    'application/connect+proto',
    'application/grpc-web',
    'text/plain',
    'application/json; charset=utf-16',
    'application/xml',
  ])
    isError(
      t,
      await send(port, { path: DECIDE, headers: { 'content-type': contentType }, body: frame(validMessage) }),
      unsupported,
      contentType,
    );
  isError(t, await send(port, { path: DECIDE }), { status: 405, code: 'method_not_allowed', param: null });
  isError(t, await send(port, { path: DECIDE, method: 'DELETE' }), {
    status: 405,
    code: 'method_not_allowed',
    param: null,
  });
});

const bytes = (...values: readonly number[]): Buffer => frame(Buffer.from(values));
const timeout = (value: string): RawRpcCall => ({ headers: { 'grpc-timeout': value } });
const type = (value: string): object => ({ 'content-type': value });
const jsonCall = (text: string): RawRpcCall => ({
  headers: type('application/grpc+json') as never,
  body: frame(Buffer.from(text)),
});

const fine = undefined;

const CASES: Readonly<Record<string, readonly [RawRpcCall, ErrorReason | undefined]>> = {
  'a valid call': [{}, fine],
  'an unknown service': [{ path: '/umpire.v2.DecisionService/CreateDecision' }, 'UNIMPLEMENTED'],
  'a REST path': [{ path: '/v1/decisions' }, 'UNIMPLEMENTED'],
  'the root': [{ path: '/' }, 'UNIMPLEMENTED'],
  'reflection, which is off': [{ path: '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo' }, 'UNIMPLEMENTED'],
  'a path with a query': [{ path: `${DECIDE}?x=1` }, fine],
  'a frame that is cut off': [{ body: frame(validMessage, { length: validMessage.length + 10 }) }, 'INVALID_MESSAGE'],
  'half a frame head': [{ body: Buffer.from([0, 0]) }, 'INVALID_MESSAGE'],
  'no message': [{ body: Buffer.alloc(0) }, 'INVALID_MESSAGE'],
  'two messages': [{ body: Buffer.concat([frame(validMessage), frame(validMessage)]) }, 'INVALID_MESSAGE'],
  'an empty message': [{ body: bytes() }, 'MISSING_FIELD'],
  'a length of 2 MiB': [{ body: frame(Buffer.alloc(10), { length: 2 << 20 }) }, 'BODY_TOO_LARGE'],
  'a length of 4 GiB': [{ body: frame(Buffer.alloc(10), { length: 0xffffffff }) }, 'BODY_TOO_LARGE'],
  'a compressed flag without a compression': [{ body: frame(validMessage, { flags: 1 }) }, 'INVALID_MESSAGE'],
  'flags that gRPC does not have': [{ body: frame(validMessage, { flags: 2 }) }, 'INVALID_MESSAGE'],
  'flags of a second message': [
    { body: Buffer.concat([frame(validMessage), frame(validMessage, { flags: 2 })]) },
    'INVALID_MESSAGE',
  ],
  'a deadline of 0 ns': [timeout('0n'), 'DEADLINE_EXCEEDED'],
  'a deadline of 0 s': [timeout('0S'), 'DEADLINE_EXCEEDED'],
  'a deadline of 0 h': [timeout('0H'), 'DEADLINE_EXCEEDED'],
  'a deadline of 11,000 years': [timeout('99999999H'), fine],
  'a deadline past 2^31 ms': [timeout('99999999S'), fine],
  'nine digits': [timeout('999999999S'), 'MALFORMED_REQUEST'],
  'no unit': [timeout('1'), 'MALFORMED_REQUEST'],
  'an unknown unit': [timeout('1x'), 'MALFORMED_REQUEST'],
  'a negative deadline': [timeout('-1S'), 'MALFORMED_REQUEST'],
  'half a second': [timeout('0.5S'), 'MALFORMED_REQUEST'],
  'an empty deadline': [timeout(''), 'MALFORMED_REQUEST'],
  'invalid UTF-8': [{ body: bytes(0x0a, 2, 0xff, 0xfe) }, 'INVALID_MESSAGE'],
  'another wire type': [{ body: bytes(0x08, 1) }, 'INVALID_MESSAGE'],
  'field number 0': [{ body: bytes(0, 1) }, 'INVALID_MESSAGE'],
  'a length past the end': [{ body: bytes(0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f) }, 'INVALID_MESSAGE'],
  'half a million groups': [{ body: frame(Buffer.alloc(1 << 19, 0x33)) }, 'INVALID_MESSAGE'],
  'an unknown field': [{ body: frame(Buffer.concat([validMessage, Buffer.from([0xfa, 0x3f, 1, 65])])) }, fine],
  'JSON with an unknown field': [jsonCall('{"temperature":1}'), 'UNKNOWN_FIELD'],
  'JSON of a wrong type': [jsonCall('{"model":1}'), 'INVALID_TYPE'],
  'JSON, 100,000 levels': [jsonCall(`{"model":${'['.repeat(100_000)}`), 'INVALID_TYPE'],
  'JSON that is none': [jsonCall('{'), 'INVALID_MESSAGE'],
  'a bad key and a broken message': [
    { headers: { authorization: 'Bearer x' }, body: bytes(0) },
    'AUTHENTICATION_REQUIRED',
  ],
  'a health check of garbage': [{ path: '/grpc.health.v1.Health/Check', body: bytes(0x0a, 9) }, 'INVALID_MESSAGE'],
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
    const code = status[ERROR_TABLE[fault].status];
    t.is(answer.trailers['grpc-status'], String(code), String(answer.trailers['grpc-message']));
    const trailers = Metadata.fromHttp2Headers(answer.trailers);
    t.like(errorDetails(trailers), { code, reason: fault, domain: 'umpire' });
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
