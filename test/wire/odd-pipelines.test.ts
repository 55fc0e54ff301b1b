/** What follows a request on its connection: answered in order, or never read as a request where it is none. */
import { connect } from 'node:net';
import anyTest, { type TestFn } from 'ava';
import { get, length, parseAnswers, post, sendRaw } from '../support/http.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService, type TestService } from '../support/service.ts';

const test = anyTest as TestFn<{ service: TestService }>;

test.before(async (t) => {
  t.context = { service: await startService({}, { engine: createScriptedEngine() }) };
});
test.after.always(({ context: { service } }) => service.stop());

test('requests in a pipeline are answered in order', async (t) => {
  const { answers } = await sendRaw(
    t.context.service.port,
    `${get('/v1/models')}${post(length)}${get('/none')}${get('/health/live')}`,
    { answers: 4 },
  );
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 404, 200],
  );
});

test('a CONNECT in a pipeline is answered behind those that came before it', async (t) => {
  const { answers, closed } = await sendRaw(
    t.context.service.port,
    `${post(length)}${get('/v1/models')}CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n${get('/health/live')}`,
    { answers: 4, timeout: 3000 },
  );
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 404],
  );
  t.true(closed);
});

test('what follows a request that is refused is not read as another one', async (t) => {
  const { port } = t.context.service;
  const smuggled = get('/health/live');
  for (const request of [
    post(`${length}Transfer-Encoding: chunked\r\n`, `0\r\n\r\n${smuggled}`),
    post('Content-Length: 0\r\nContent-Length: 5\r\n', smuggled),
    post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`),
    get('/v1/models', 'HTTP/1.1', 'Host: a\r\nHost: b\r\n'),
  ]) {
    const { answers } = await sendRaw(port, request);
    t.is(answers.length, 1);
    t.is(answers[0]?.status, 400);
    t.is(answers[0]?.headers.connection, 'close');
  }
});

test('what is refused before it is read is not asked for its body', async (t) => {
  const { bytes } = await sendRaw(t.context.service.port, post(`${length}Expect: 100-continue, 200-ok\r\n`));
  t.regex(bytes.toString(), /^HTTP\/1\.1 417 /);
});

test('Expect: 100-continue is answered before the body, a refusal too, and HTTP/1.0 without it', async (t) => {
  const { port } = t.context.service;
  const expecting = post(`${length}Expect: 100-continue\r\n`);
  const continued = await sendRaw(port, expecting);
  t.is(continued.answers[0]?.status, 200);
  t.regex(continued.bytes.toString(), /^HTTP\/1\.1 100 Continue\r\n/);
  // None of the body was sent.
  const refused = await sendRaw(port, post(`Content-Length: ${2 << 20}\r\nExpect: 100-continue\r\n`, ''));
  t.is(refused.answers[0]?.status, 413);
  const old = await sendRaw(port, expecting.replace('HTTP/1.1', 'HTTP/1.0'));
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
    const { service } = t.context;
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
    t.context.service.port,
    `POST /v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}${get('/none')}`,
    { answers: 2 },
  );
  t.deepEqual(
    answers.map(({ status }) => status),
    [405, 404],
  );
});
