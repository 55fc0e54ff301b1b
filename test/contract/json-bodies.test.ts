/** Bodies that are not one strict JSON object, over HTTP/1.1, HTTP/2 and, where it also takes JSON, Connect. */
import type { ClientHttp2Session } from 'node:http2';
import { gzipSync } from 'node:zlib';
import anyTest, { type TestFn } from 'ava';
import { type ExpectedError, isError, json, validBody } from '../support/answers.ts';
import { openSession, send, sendH2 } from '../support/http.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService, type TestService } from '../support/service.ts';

const test = anyTest as TestFn<{ service: TestService; session: ClientHttp2Session }>;

test.before(async (t) => {
  const service = await startService({}, { engine: createScriptedEngine() });
  t.context = { service, session: openSession(service.port) };
});
test.after.always(async ({ context: { service, session } }) => {
  session.close();
  await service.stop();
});

const text = JSON.stringify(validBody);
const bytes = (...parts: readonly (string | readonly number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)));
const invalid: ExpectedError = { status: 400, code: 'invalid_json', param: null };
const duplicate = (param: string): ExpectedError => ({ status: 400, code: 'duplicate_field', param });
const unknown = (param: string): ExpectedError => ({ status: 400, code: 'unknown_field', param });

const bodies: readonly (readonly [what: string, body: string | Buffer, ExpectedError])[] = [
  ['nothing', '', invalid],
  ['spaces', ' \r\n\t ', invalid],
  ['a byte order mark', bytes([0xef, 0xbb, 0xbf], text), invalid],
  ['only a byte order mark', bytes([0xef, 0xbb, 0xbf]), invalid],
  ['invalid UTF-8', bytes('{"model":"', [0xff, 0xfe], '"}'), invalid],
  ['overlong UTF-8', bytes('{"model":"', [0xc0, 0xaf], '"}'), invalid],
  ['a surrogate in UTF-8', bytes('{"model":"', [0xed, 0xa0, 0xbd], '"}'), invalid],
  ['UTF-8 cut off', bytes('{"model":"', [0xe2, 0x82], '"}'), invalid],
  ['UTF-16 with its mark', Buffer.from(`\ufeff${text}`, 'utf16le'), invalid],
  ['UTF-16 without', Buffer.from(text, 'utf16le'), invalid],
  ['UTF-32', bytes([0, 0, 0, 0x7b, 0, 0, 0, 0x7d]), invalid],
  ['a list', `[${text}]`, invalid],
  ['a string', '"{}"', invalid],
  ['null', 'null', invalid],
  ['a number', '1', invalid],
  ['half an object', text.slice(0, -1), invalid],
  ['two objects', `${text}${text}`, invalid],
  ['lines of JSON', `${text}\n${text}`, invalid],
  ['a trailing comma', text.replace(/}$/, ',}'), invalid],
  ['single quotes', "{'model':'x'}", invalid],
  ['a comment', `/* */${text}`, invalid],
  ['NaN', '{"model":NaN}', invalid],
  ['a raw line break in a string', '{"model":"a\nb"}', invalid],
  ['a raw NUL', '{"model":"\0"}', invalid],
  ['a bad escape', '{"model":"\\x41"}', invalid],
  ['half an escape', '{"model":"\\u12"}', invalid],
  ['a form', 'model=minilm-l6&input=x', invalid],
  ['a gzip stream', gzipSync(text), invalid],
  [
    '100,000 levels of lists',
    `{"model":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    { status: 400, code: 'invalid_type', param: 'model' },
  ],
  ['100,000 levels of objects', `{"x":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`, unknown('x')],
  ['100,000 levels, open', `{"model":${'['.repeat(100_000)}`, { status: 400, code: 'invalid_type', param: 'model' }],
  ['a property twice', text.replace(/}$/, ',"model":"other"}'), duplicate('model')],
  ['a property twice, the same value', text.replace(/}$/, `,"model":"${validBody.model}"}`), duplicate('model')],
  ['a property twice, once escaped', text.replace(/}$/, ',"\\u006dodel":"other"}'), duplicate('model')],
  ['a property twice, both escaped', '{"\\u006dodel":"a","mode\\u006c":"b"}', duplicate('model')],
  ['choices twice', text.replace(/}$/, ',"choices":["a","b"]}'), duplicate('choices')],
  ['an unknown property twice', text.replace(/}$/, ',"x":1,"x":2}'), unknown('x')],
  ['__proto__', text.replace(/}$/, ',"__proto__":{"model":"x"}}'), unknown('__proto__')],
  ['__proto__ instead of the fields', `{"__proto__":${text}}`, unknown('__proto__')],
  ['__proto__, escaped', text.replace(/}$/, ',"\\u005f_proto__":null}'), unknown('__proto__')],
  ['a name of 200,000 characters', `{"${'n'.repeat(200_000)}":1}`, unknown(`${'n'.repeat(128)}…`)],
  ['200,000 unknown names', `{${Array.from({ length: 100_000 }, (_, index) => `"${index}":0`).join()}}`, unknown('0')],
  [
    'a unique name that only looks doubled',
    '{"model":"\\"model\\":","input":1}',
    { status: 400, code: 'invalid_type', param: 'input' },
  ],
];

for (const [what, body, expected] of bodies) {
  test(`a body of ${what}`, async (t) => {
    isError(t, await send(t.context.service.port, { body }), expected);
    isError(t, await sendH2(t.context.session, { body }), expected, 'over HTTP/2');
    const answer = await send(t.context.service.port, { path: '/umpire.v1.DecisionService/CreateDecision', body });
    t.is(answer.status, 400, answer.text);
    t.is(json(answer).code, 'invalid_argument', answer.text);
    t.truthy(json(answer).details);
  });
}

test('nothing of a body comes back in a message', async (t) => {
  for (const body of [
    '{"model":"geheim" "input"}',
    '{"model": geheim}',
    `{"input":"geheim","model":${'x'.repeat(20)}}`,
  ]) {
    const answer = await send(t.context.service.port, { body });
    t.is(answer.status, 400);
    t.notRegex(answer.text, /geheim|xxx/);
  }
});

const types: readonly (readonly [string, boolean])[] = [
  ['application/json', true],
  ['application/json; charset=utf-8', true],
  ['application/json;charset=UTF-8', true],
  ['application/json; charset="utf-8"', true],
  ['APPLICATION/JSON', true],
  ['application/json; profile=x', true],
  ['application/json; charset=utf-16', false],
  ['application/json; charset=iso-8859-1', false],
  ['application/json; charset=', false],
  ['application/json, text/plain', false],
  ['application/problem+json', false],
  ['application/x-www-form-urlencoded', false],
  ['multipart/form-data; boundary=x', false],
  ['text/plain', false],
  ['text/json', false],
  ['application/xml', false],
  ['application/proto', false],
  ['', false],
  [';', false],
];

for (const [type, accepted] of types) {
  test(`content type ${type}`, async (t) => {
    const answer = await send(t.context.service.port, { body: text, headers: { 'content-type': type } });
    if (accepted) t.is(answer.status, 200, answer.text);
    else isError(t, answer, { status: 415, code: 'unsupported_media_type', param: null });
  });
}

test('a body without a content type', async (t) => {
  const answer = await sendH2(t.context.session, { method: 'POST', headers: {} });
  isError(t, answer, { status: 415, code: 'unsupported_media_type', param: null });
});

for (const encoding of ['gzip', 'br', 'deflate', 'zstd', 'gzip, identity', 'x-unknown', 'GZIP']) {
  test(`content encoding ${encoding}`, async (t) => {
    const call = { body: gzipSync(text), headers: { 'content-encoding': encoding } };
    const expected = { status: 415, code: 'unsupported_encoding', param: null };
    isError(t, await send(t.context.service.port, call), expected);
    isError(t, await sendH2(t.context.session, call), expected);
  });
}

test('content encoding identity is none', async (t) => {
  t.is((await send(t.context.service.port, { body: text, headers: { 'content-encoding': 'identity' } })).status, 200);
});
