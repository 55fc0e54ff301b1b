/**
 * Connect requests that are wrong: the protocol's error with ErrorInfo and never a 5xx, or an envelope where it is no
 * Connect at all.
 */
import { gzipSync } from 'node:zlib';
import test from 'ava';
import { isError, json, VALID_BODY } from '../../support/answers.ts';
import { type Call, DECIDE, frame, send, validMessage } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
test.after.always(() => service.stop());

const text = JSON.stringify(VALID_BODY);
const PROTO = { 'content-type': 'application/proto' };
const GZIP = { 'content-encoding': 'gzip' };
const timeout = (value: string): Call => ({ headers: { 'connect-timeout-ms': value }, body: text });
const models = (query: string): Call => ({ method: 'GET', path: `/umpire.v1.ModelService/ListModels${query}` });

type Fault = readonly [status: number, code: string, reason: string];
const INVALID: Fault = [400, 'invalid_argument', 'INVALID_MESSAGE'];
const TOO_LARGE: Fault = [413, 'invalid_argument', 'BODY_TOO_LARGE'];
const ENCODING: Fault = [415, 'unimplemented', 'UNSUPPORTED_ENCODING'];
const MALFORMED: Fault = [400, 'invalid_argument', 'MALFORMED_REQUEST'];

const CASES: Readonly<Record<string, readonly [Call, Fault | 200]>> = {
  'names in camelCase, which Connect’s JSON allows': [
    { path: '/umpire.v1.ModelService/GetModel', body: '{"model":"minilm-l6"}' },
    200,
  ],
  'a truncated protobuf': [{ headers: PROTO, body: validMessage.subarray(0, -4) }, INVALID],
  'an empty protobuf': [{ headers: PROTO, body: Buffer.alloc(0) }, [400, 'invalid_argument', 'MISSING_FIELD']],
  'a wrong type': [{ body: '{"model":1}' }, [400, 'invalid_argument', 'INVALID_TYPE']],
  'null, which protobuf’s JSON takes for an absent field': [
    { body: JSON.stringify({ ...VALID_BODY, input: null }) },
    [400, 'invalid_argument', 'INVALID_TYPE'],
  ],
  'invalid UTF-8': [{ body: Buffer.from(JSON.stringify({ ...VALID_BODY, input: 'x\xff' }), 'latin1') }, INVALID],
  'a byte order mark, compressed': [{ headers: GZIP, body: gzipSync(`\ufeff${text}`) }, INVALID],
  '301 choices in protobuf, and 5,000': [
    { headers: PROTO, body: Buffer.concat([validMessage, Buffer.alloc(10_000, Buffer.from([0x22, 0x00]))]) },
    [400, 'invalid_argument', 'INVALID_CHOICES'],
  ],
  '5,000 unknown fields in protobuf': [
    { headers: PROTO, body: Buffer.concat([validMessage, Buffer.alloc(10_000, Buffer.from([0x78, 0x01]))]) },
    INVALID,
  ],
  'a deadline of 0': [timeout('0'), [504, 'deadline_exceeded', 'DEADLINE_EXCEEDED']],
  'a deadline of 10 digits': [timeout('9999999999'), 200],
  'a deadline of 11 digits': [timeout('99999999999'), MALFORMED],
  'a negative deadline': [timeout('-1'), MALFORMED],
  'a deadline in words': [timeout('soon'), MALFORMED],
  'half a millisecond': [timeout('0.5'), MALFORMED],
  'an unknown service': [
    { path: '/umpire.v9.DecisionService/CreateDecision', body: text },
    [404, 'unimplemented', 'UNIMPLEMENTED'],
  ],
  'a GET of a procedure without side effects': [models('?encoding=json&message={}'), 200],
  'a GET of a protobuf in base64': [models('?encoding=proto&base64=1&message='), 200],
  'a GET of a broken message': [models('?encoding=json&message='), INVALID],
  'a GET of base64 that is none': [models('?encoding=json&base64=1&message=%FF'), INVALID],
  'a GET of an unknown compression': [models('?encoding=json&message={}&compression=zip'), ENCODING],
  'a GET of a gzip bomb': [
    models(
      `?encoding=json&compression=gzip&base64=1&message=${gzipSync(Buffer.alloc(4 << 20, 32)).toString('base64url')}`,
    ),
    TOO_LARGE,
  ],
};

for (const [what, [call, expected]] of Object.entries(CASES)) {
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
