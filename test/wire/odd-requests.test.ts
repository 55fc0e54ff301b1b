/**
 * Requests that are odd as HTTP, over a bare socket and over HTTP/2, and what follows them on their connection: always
 * an envelope with the right status, never a reset, never two readings of one request.
 * One file: both versions of HTTP are asked for the same, of one service.
 */
import { connect } from 'node:net';
import test from 'ava';
import { type Answer, type ExpectedError, isError } from '../support/answers.ts';
import { get, length, openSession, parseAnswers, post, sendH2, sendRaw, text } from '../support/http.ts';
import { until } from '../support/redis.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService } from '../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
const session = openSession(service.port);
test.after.always(async () => {
  session.destroy();
  await service.stop();
});

const MALFORMED: ExpectedError = { status: 400, code: 'malformed_request', param: null };
const UNAUTHORISED: ExpectedError = { status: 401, code: 'authentication_required', param: null };
const LONG_HEADERS: ExpectedError = { status: 431, code: 'headers_too_large', param: null };
const UNEXPECTED: ExpectedError = { status: 417, code: 'expectation_failed', param: null };
const NOT_FOUND: ExpectedError = { status: 404, code: 'route_not_found', param: null };
const TOO_LARGE: ExpectedError = { status: 413, code: 'body_too_large', param: null };
const OK = 200;

const CASES: Readonly<Record<string, readonly [request: string | Uint8Array, number | ExpectedError]>> = {
  'a plain decision': [post(length), OK],
  'lines that end in LF alone': [get('/v1/models').replaceAll('\r\n', '\n'), MALFORMED],
  'an empty line before the request': [`\r\n${get('/v1/models')}`, OK],
  'HTTP/1.0': [get('/v1/models', 'HTTP/1.0', ''), OK],
  'HTTP/1.0, shorter than the HTTP/2 preface': ['GET / HTTP/1.0\r\n\r\n', OK],
  'HTTP/0.9': ['GET /\r\n\r\n', MALFORMED],
  'HTTP/1.2': [get('/v1/models', 'HTTP/1.2'), MALFORMED],
  'HTTP/2.0 without the preface': [get('/v1/models', 'HTTP/2.0'), MALFORMED],
  'HTTP/3': [get('/v1/models', 'HTTP/3'), MALFORMED],
  'a preface that goes wrong': ['PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n', MALFORMED],
  'a lower-case method': [get('/v1/models').replace('GET', 'get'), MALFORMED],
  'no version': ['GET /v1/models\r\nHost: a\r\n\r\n', MALFORMED],
  'a TLS hello': [Buffer.from('160301020001000001fc0303', 'hex'), MALFORMED],
  'binary noise': [Buffer.from(Array.from({ length: 64 }, (_, index) => (index * 37 + 1) % 256)), MALFORMED],
  'NUL in the path': [get('/v1/models\0'), MALFORMED],
  'a space in the path': [get('/v1/mo dels'), MALFORMED],
  'NUL in a header': [get('/v1/models', 'HTTP/1.1', 'Host: a\r\nX: a\0b\r\n'), MALFORMED],
  'a folded header': [get('/v1/models', 'HTTP/1.1', 'Host: a\r\nX: a\r\n b\r\n'), MALFORMED],
  'a space before the colon': [get('/v1/models', 'HTTP/1.1', 'Host: a\r\nX : a\r\n'), MALFORMED],
  'a header without a name': [get('/v1/models', 'HTTP/1.1', 'Host: a\r\n: a\r\n'), MALFORMED],
  'CR alone in a header': [get('/v1/models', 'HTTP/1.1', 'Host: a\r\nX: a\rb\r\n'), MALFORMED],
  'no host': [get('/v1/models', 'HTTP/1.1', ''), MALFORMED],
  'an empty host': [get('/v1/models', 'HTTP/1.1', 'Host:\r\n'), OK],
  'an odd host': [get('/v1/models', 'HTTP/1.1', 'Host: ////@@:::\r\n'), OK],
  'two hosts': [get('/v1/models', 'HTTP/1.1', 'Host: a\r\nHost: a\r\n'), MALFORMED],
  'two hosts in different case': [get('/v1/models', 'HTTP/1.1', 'Host: a\r\nhOsT: b\r\n'), MALFORMED],
  'two authorizations': [
    get('/v1/models', 'HTTP/1.1', 'Host: a\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n'),
    UNAUTHORISED,
  ],
  'two content types': [post(`${length}Content-Type: text/plain\r\n`), MALFORMED],
  'two lengths that differ': [post(`${length}Content-Length: 5\r\n`), MALFORMED],
  'two lengths that agree': [post(`${length}${length}`), MALFORMED],
  'a negative length': [post('Content-Length: -1\r\n'), MALFORMED],
  'a length in hex': [post('Content-Length: 0x10\r\n'), MALFORMED],
  'a length with a plus': [post('Content-Length: +5\r\n'), MALFORMED],
  'a length of 2^64': [post('Content-Length: 18446744073709551616\r\n'), MALFORMED],
  'a length of 2^63': [post('Content-Length: 9223372036854775808\r\n', ''), TOO_LARGE],
  'a length and chunks': [post(`${length}Transfer-Encoding: chunked\r\n`, `0\r\n\r\n`), MALFORMED],
  'chunks and a length': [post(`Transfer-Encoding: chunked\r\n${length}`, `0\r\n\r\n`), MALFORMED],
  'chunks, twice': [post('Transfer-Encoding: chunked, chunked\r\n', '0\r\n\r\n'), MALFORMED],
  'chunks that are not last': [post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'), MALFORMED],
  'chunks of what is compressed': [
    post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
    { status: 415, code: 'unsupported_encoding', param: null },
  ],
  'an unknown transfer coding': [post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'), MALFORMED],
  'chunks over HTTP/1.0': [
    post('Transfer-Encoding: chunked\r\n', `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`).replace(
      'HTTP/1.1',
      'HTTP/1.0',
    ),
    OK,
  ],
  chunks: [post('Transfer-Encoding: chunked\r\n', `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`), OK],
  'a chunk size that is none': [post('Transfer-Encoding: chunked\r\n', 'zz\r\n\r\n'), MALFORMED],
  'a chunk size of 2^64': [post('Transfer-Encoding: chunked\r\n', '10000000000000000\r\n'), MALFORMED],
  'a chunk extension of 20 KiB': [
    post('Transfer-Encoding: chunked\r\n', `1;${'x'.repeat(20_000)}\r\n{\r\n0\r\n\r\n`),
    TOO_LARGE,
  ],
  trailers: [
    post(
      'Transfer-Encoding: chunked\r\n',
      `${text.length.toString(16)}\r\n${text}\r\n0\r\nAuthorization: Bearer x\r\n\r\n`,
    ),
    OK,
  ],
  'a POST without a body': [post('', ''), { status: 400, code: 'invalid_json', param: null }],
  'a GET with a body': [`${get('/v1/models', 'HTTP/1.1', 'Host: a\r\nContent-Length: 4\r\n')}junk`, OK],
  'many headers': [get('/v1/models', 'HTTP/1.1', `Host: a\r\n${'a: b\r\n'.repeat(4000)}`), LONG_HEADERS],
  'a path of 20 KiB': [get(`/${'x'.repeat(20_000)}`), LONG_HEADERS],
  'an unknown Expect': [post(`${length}Expect: 200-ok\r\n`), UNEXPECTED],
  'Expect: 100-continue': [post(`${length}Expect: 100-continue\r\n`), OK],
  'Expect: 100-continue, twice': [post(`${length}Expect: 100-continue\r\nExpect: 100-continue\r\n`), OK],
  'two that are expected': [post(`${length}Expect: 100-continue\r\nExpect: 200-ok\r\n`), UNEXPECTED],
  'an upgrade to h2c': [
    post(`${length}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n`),
    OK,
  ],
  'an upgrade to WebSocket': [
    get('/v1/models', 'HTTP/1.1', 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n'),
    OK,
  ],
  CONNECT: ['CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n', NOT_FOUND],
  'an absolute target': [get('http://elsewhere.example/v1/models'), OK],
  'an absolute target without a path': [get('http://elsewhere.example'), NOT_FOUND],
  'an absolute target with a query alone': [get('http://elsewhere.example?x=/v1/models'), NOT_FOUND],
  'a target of another scheme': [get('ftp://x/v1/models'), OK],
  'an asterisk': ['OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', NOT_FOUND],
  'GET of an asterisk': [get('*'), NOT_FOUND],
  'a target without a slash': [get('v1/models'), MALFORMED],
  'a query': [get('/v1/models?x=1&y=/none'), OK],
  'an empty query': [get('/v1/models?'), OK],
  'a fragment': [get('/v1/models#x'), NOT_FOUND],
  'a doubled slash': [get('//v1/models'), NOT_FOUND],
  'a doubled slash inside': [get('/v1//models'), NOT_FOUND],
  'an escaped letter': [get('/v1/%6dodels'), NOT_FOUND],
  'an escaped slash': [get('/v1%2fmodels'), NOT_FOUND],
  dots: [get('/v1/../v1/models'), NOT_FOUND],
  'dots, escaped': [get('/v1/%2e%2e/v1/models'), NOT_FOUND],
  'a backslash': [get('/v1\\models'), NOT_FOUND],
  'a bad escape in a variable': [get('/v1/models/%zz'), NOT_FOUND],
  'half an escape in a variable': [get('/v1/models/%4'), NOT_FOUND],
  'an escape that is not UTF-8': [get('/v1/models/%ff%fe'), NOT_FOUND],
  'an escaped NUL': [get('/v1/models/a%00b'), { status: 404, code: 'model_not_found', param: 'model' }],
  'a semicolon': [get('/v1/models;x=1'), NOT_FOUND],
  capitals: [get('/V1/MODELS'), NOT_FOUND],
  'bytes above ASCII': [Buffer.from('GET /v1/m\u00f6dels HTTP/1.1\r\nHost: a\r\n\r\n', 'latin1'), MALFORMED],
  'the path of a property': [get('/__proto__'), NOT_FOUND],
};

for (const [what, [request, expected]] of Object.entries(CASES)) {
  test(what, async (t) => {
    const { answers, bytes } = await sendRaw(service.port, request);
    const answer = answers[0] as Answer;
    t.truthy(answer, `no answer, but ${bytes.length} bytes: ${bytes.toString('latin1').slice(0, 200)}`);
    if (expected === OK) t.is(answer.status, 200, answer.text);
    else isError(t, answer, expected as ExpectedError);
  });
}

test('bytes one by one', async (t) => {
  const socket = connect(service.port, '127.0.0.1');
  socket.setNoDelay(true);
  const received = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
  for (const byte of get('/health/live')) {
    socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.regex(await received, /^HTTP\/1\.1 200 /);
  socket.destroy();
});

test('requests in a pipeline are answered in order', async (t) => {
  const { answers } = await sendRaw(
    service.port,
    `${get('/v1/models')}${post(length)}${get('/none')}${get('/health/live')}`,
    { answers: 4 },
  );
  const statuses = answers.map(({ status }) => status);
  t.deepEqual(statuses, [200, 200, 404, 200]);
});

test('a CONNECT in a pipeline is answered behind those that came before it', async (t) => {
  const { answers, closed } = await sendRaw(
    service.port,
    `${post(length)}${get('/v1/models')}CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n${get('/health/live')}`,
    { answers: 4, timeout: 3000 },
  );
  const found = answers.map(({ status }) => status);
  t.deepEqual(found, [200, 200, 404]);
  t.true(closed);
});

test('what follows a request that is refused is not read as another one', async (t) => {
  const smuggled = get('/health/live');
  for (const request of [
    post(`${length}Transfer-Encoding: chunked\r\n`, `0\r\n\r\n${smuggled}`),
    post('Content-Length: 0\r\nContent-Length: 5\r\n', smuggled),
    post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`),
    get('/v1/models', 'HTTP/1.1', 'Host: a\r\nHost: b\r\n'),
  ]) {
    const { answers } = await sendRaw(service.port, request);
    t.is(answers.length, 1);
    t.is(answers[0]?.status, 400);
    t.is(answers[0]?.headers.connection, 'close');
  }
});

test('what is refused before it is read is not asked for its body', async (t) => {
  const { bytes } = await sendRaw(service.port, post(`${length}Expect: 100-continue, 200-ok\r\n`));
  t.regex(bytes.toString(), /^HTTP\/1\.1 417 /);
});

test('Expect: 100-continue is answered before the body, a refusal too, and HTTP/1.0 without it', async (t) => {
  const expecting = post(`${length}Expect: 100-continue\r\n`);
  const continued = await sendRaw(service.port, expecting);
  t.is(continued.answers[0]?.status, 200);
  t.regex(continued.bytes.toString(), /^HTTP\/1\.1 100 Continue\r\n/);
  // None of the body was sent.
  const refused = await sendRaw(service.port, post(`Content-Length: ${2 << 20}\r\nExpect: 100-continue\r\n`, ''));
  t.is(refused.answers[0]?.status, 413);
  const old = await sendRaw(service.port, expecting.replace('HTTP/1.1', 'HTTP/1.0'));
  t.is(old.answers[0]?.status, 200);
  t.notRegex(old.bytes.toString(), /100 Continue/);
});

// Node throws away what came with such a request and reads on behind it: a body would be the next request.
const behind = get('/none', 'HTTP/1.1', 'Host: a\r\nX-Request-ID: behind-an-upgrade\r\n');
const upgrade = get('/v1/models', 'HTTP/1.1', 'Host: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n');
const promise = `POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: ${behind.length}\r\n\r\n`;
for (const [what, parts] of Object.entries({
  'in the same read': [`${upgrade}${behind}`],
  'in the next read': [`${upgrade}${promise}`, behind],
})) {
  test(`what follows an Upgrade is no request, ${what}`, async (t) => {
    const socket = connect(service.port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    for (const part of parts) {
      socket.write(part);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await closed;
    const answers = parseAnswers(Buffer.concat(chunks));
    t.deepEqual(
      answers.map(({ status, headers }) => [status, headers.connection]),
      [[200, 'close']],
    );
    t.false(service.log.some(({ callerRequestId }) => callerRequestId === 'behind-an-upgrade'));
  });
}

test('a body that was refused unread is not taken for the next request', async (t) => {
  const body = `${get('/health/live')}${get('/health/live')}`;
  const { answers } = await sendRaw(
    service.port,
    `POST /v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}${get('/none')}`,
    { answers: 2 },
  );
  t.deepEqual(
    answers.map(({ status }) => status),
    [405, 404],
  );
});

const HTTP2_CASES: Readonly<Record<string, readonly [call: Parameters<typeof sendH2>[1], 200 | ExpectedError]>> = {
  'headers of 15 KB': [{ body: text, headers: { x: 'x'.repeat(15_000) } }, 200],
  'headers of 20 KB': [{ body: text, headers: { x: 'x'.repeat(20_000) } }, LONG_HEADERS],
  'Expect: 100-continue': [{ body: text, headers: { expect: '100-continue' } }, 200],
  'an unknown Expect': [{ body: text, headers: { expect: '200-ok' } }, UNEXPECTED],
  'a fragment': [{ path: '/v1/models#x' }, NOT_FOUND],
  'another scheme': [{ path: '/v1/models', headers: { ':scheme': 'gopher' } }, 200],
  'an unknown method': [
    { path: '/v1/models', method: 'BREW' },
    { status: 405, code: 'method_not_allowed', param: null },
  ],
  'a key with a space behind it': [{ body: text, headers: { authorization: 'Bearer nothing ' } }, UNAUTHORISED],
  'only a space for a key': [{ body: text, headers: { authorization: ' ' } }, UNAUTHORISED],
  '10 MB where there is no body': [{ path: '/none', body: 'x'.repeat(10 << 20) }, NOT_FOUND],
};

for (const [what, [call, expected]] of Object.entries(HTTP2_CASES)) {
  test(`HTTP/2: ${what}`, async (t) => {
    const answer = await sendH2(session, call);
    if (expected === 200) t.is(answer.status, 200, answer.text);
    else isError(t, answer, expected);
    t.is(answer.headers.connection, undefined);
  });
}

test('a method of any length is cut in the log', async (t) => {
  const answer = await sendH2(session, { path: '/v1/models', method: 'X'.repeat(10_000) });
  t.is(answer.status, 405);
  const line = () => service.log.find(({ requestId }) => requestId === answer.headers['x-request-id']);
  await until(() => line() !== undefined);
  t.is(line()?.method, 'X'.repeat(16));
});

test('HTTP/2: CONNECT', async (t) => {
  const stream = session.request({ ':method': 'CONNECT', ':authority': 'a:443' });
  const answer = await new Promise<Answer>((resolve, reject) => {
    let text = '';
    let headers: Record<string, unknown> = {};
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('data', (chunk) => {
      text += chunk;
    });
    stream.on('error', reject);
    stream.on('end', () => resolve({ status: Number(headers[':status']), headers: headers as never, text }));
    stream.end();
  });
  isError(t, answer, NOT_FOUND);
});

test('more requests than streams are allowed, on one connection', async (t) => {
  const session = openSession(service.port);
  const answers = await Promise.all(Array.from({ length: 250 }, () => sendH2(session, { body: text })));
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  session.destroy();
});
