/** Connect requests that are wrong: the protocol's error with ErrorInfo and never a 5xx, or an envelope where it is no Connect at all. */
import { gzipSync } from 'node:zlib';
import test from 'ava';
import { isError, json, validBody } from '../../support/answers.ts';
import { type Call, send } from '../../support/http.ts';
import { DECIDE, frame, validMessage } from '../../support/raw-rpc.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
test.after.always(() => service.stop());

const text = JSON.stringify(validBody);
const proto = { 'content-type': 'application/proto' };
const gzip = { 'content-encoding': 'gzip' };
const timeout = (value: string): Call => ({ headers: { 'connect-timeout-ms': value }, body: text });
const models = (query: string): Call => ({ method: 'GET', path: `/umpire.v1.ModelService/ListModels${query}` });

type Fault = readonly [status: number, code: string, reason: string];
const invalid: Fault = [400, 'invalid_argument', 'INVALID_MESSAGE'];
const tooLarge: Fault = [413, 'invalid_argument', 'BODY_TOO_LARGE'];
const encoding: Fault = [415, 'unimplemented', 'UNSUPPORTED_ENCODING'];
const malformed: Fault = [400, 'invalid_argument', 'MALFORMED_REQUEST'];

const cases: Readonly<Record<string, readonly [Call, Fault | 200]>> = {
  JSON: [{ body: text }, 200],
  protobuf: [{ headers: proto, body: validMessage }, 200],
  'names in camelCase, which Connect’s JSON allows': [
    { path: '/umpire.v1.ModelService/GetModel', body: '{"model":"minilm-l6"}' },
    200,
  ],
  'a truncated protobuf': [{ headers: proto, body: validMessage.subarray(0, -4) }, invalid],
  'an empty protobuf': [{ headers: proto, body: Buffer.alloc(0) }, [400, 'invalid_argument', 'MISSING_FIELD']],
  gzip: [{ headers: gzip, body: gzipSync(text) }, 200],
  'gzip that is none': [{ headers: gzip, body: text }, invalid],
  'gzip, cut off': [{ headers: gzip, body: gzipSync(text).subarray(0, -10) }, invalid],
  'a gzip bomb': [{ headers: gzip, body: gzipSync(Buffer.alloc(50 << 20, 32)) }, tooLarge],
  br: [{ headers: { 'content-encoding': 'br' }, body: text }, encoding],
  'two compressions': [{ headers: { 'content-encoding': 'gzip, gzip' }, body: text }, encoding],
  '2 MiB': [{ body: 'x'.repeat(2 << 20) }, tooLarge],
  'a wrong type': [{ body: '{"model":1}' }, [400, 'invalid_argument', 'INVALID_TYPE']],
  'null, which protobuf’s JSON takes for an absent field': [
    { body: JSON.stringify({ ...validBody, input: null }) },
    [400, 'invalid_argument', 'INVALID_TYPE'],
  ],
  'invalid UTF-8': [{ body: Buffer.from(JSON.stringify({ ...validBody, input: 'x\xff' }), 'latin1') }, invalid],
  'a byte order mark': [{ body: `\ufeff${text}` }, invalid],
  'the same, compressed': [{ headers: gzip, body: gzipSync(`\ufeff${text}`) }, invalid],
  '301 choices in protobuf, and 5,000': [
    { headers: proto, body: Buffer.concat([validMessage, Buffer.alloc(10_000, Buffer.from([0x22, 0x00]))]) },
    [400, 'invalid_argument', 'INVALID_CHOICES'],
  ],
  '5,000 unknown fields in protobuf': [
    { headers: proto, body: Buffer.concat([validMessage, Buffer.alloc(10_000, Buffer.from([0x78, 0x01]))]) },
    invalid,
  ],
  'a deadline of 0': [timeout('0'), [504, 'deadline_exceeded', 'DEADLINE_EXCEEDED']],
  'a deadline of 10 digits': [timeout('9999999999'), 200],
  'a deadline of 11 digits': [timeout('99999999999'), malformed],
  'a negative deadline': [timeout('-1'), malformed],
  'a deadline in words': [timeout('soon'), malformed],
  'half a millisecond': [timeout('0.5'), malformed],
  'an unknown service': [
    { path: '/umpire.v9.DecisionService/CreateDecision', body: text },
    [404, 'unimplemented', 'UNIMPLEMENTED'],
  ],
  'a GET of a procedure without side effects': [models('?encoding=json&message={}'), 200],
  'a GET of a protobuf in base64': [models('?encoding=proto&base64=1&message='), 200],
  'a GET of a broken message': [models('?encoding=json&message='), invalid],
  'a GET of base64 that is none': [models('?encoding=json&base64=1&message=%FF'), invalid],
  'a GET of an unknown compression': [models('?encoding=json&message={}&compression=zip'), encoding],
  'a GET of a gzip bomb': [
    models(
      `?encoding=json&compression=gzip&base64=1&message=${gzipSync(Buffer.alloc(4 << 20, 32)).toString('base64url')}`,
    ),
    tooLarge,
  ],
};

for (const [what, [call, expected]] of Object.entries(cases)) {
  test(what, async (t) => {
    const answer = await send(service.port, { path: DECIDE, ...call });
    t.regex(String(answer.headers['x-request-id']), /^req_/);
    if (expected === 200) {
      t.is(answer.status, 200, answer.text);
      return;
    }
    const [status, code, reason] = expected;
    t.is(answer.status, status, answer.text);
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

test('an answer is not compressed, whatever the caller accepts', async (t) => {
  const answer = await send(service.port, {
    path: DECIDE,
    body: text,
    headers: { 'accept-encoding': 'gzip, br' },
  });
  t.is(answer.headers['content-encoding'], undefined);
  t.is(answer.status, 200);
});
