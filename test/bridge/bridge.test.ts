/** The bridge in front of a real service: its answers are the service's own, and so are its refusals. */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import test from 'ava';
import { mintKey } from '../../src/domain/keys.ts';
import { json } from '../support/answers.ts';
import { startBridge } from '../support/bridge.ts';
import { decide, send } from '../support/http.ts';
import { faultOf, startTestMock } from '../support/mock.ts';
import { until } from '../support/redis.ts';
import { startService } from '../support/service.ts';

const ONE = { type: 'choice', instructions: 'Which team?', criteria: { billing: null, shipping: 'parcels, delivery' } };
const body = (questions: object, model = 'minilm-l6', state: unknown = 'billing: I was charged twice') =>
  JSON.stringify({ model, state, questions });
const systemOne = (port: number, text: string, headers = {}) =>
  send(port, { path: '/v1/systemone', body: text, headers });
const openAi = (port: number, value: object, headers = {}) =>
  send(port, { path: '/v1/decisions', body: JSON.stringify(value), headers });
const PREDICATE = { type: 'predicate', instructions: 'It is about money' };

interface Answered {
  readonly model: string;
  readonly answers: Readonly<Record<string, Record<string, unknown>>>;
  readonly usage: { readonly input_tokens: number };
}

test('answers are those of POST /v1/decisions, bit for bit, in whatever order questions and choices come', async (t) => {
  const service = await startService();
  t.teardown(service.stop);
  const { port, log } = await startBridge(t, service.url, { aliases: new Map([['jev-latest', 'minilm-l6@r1']]) });
  const questions: Record<string, { instructions: string; criteria: Record<string, string | null> }> = {};
  for (let i = 0; i < 20; i++) {
    const labels = Array.from({ length: 2 + ((i * 7) % 40) }, (_, n) => (n % 3 === 0 ? `${n}` : `Grund ${n} é`));
    const criteria = Object.fromEntries(labels.map((label, n) => [label, n % 2 === 0 ? null : `number ${n} of ${i}`]));
    questions[`q${i}`] = { instructions: `Which of these, ${i}?`, criteria };
  }
  const typed = Object.entries(questions).map(([name, one]) => [name, { type: 'choice', ...one }] as const);
  const answer = await systemOne(port, body(Object.fromEntries(typed), 'jev-latest'));
  t.is(answer.status, 200, answer.text);
  const { model, answers, usage } = json(answer) as never as Answered;
  t.is(model, 'minilm-l6@r1');
  let tokens = 0;
  for (const [name, { instructions: instruction, criteria }] of Object.entries(questions)) {
    const texts = Object.entries(criteria).map(([label, text]) => (text === null ? label : `${label}: ${text}`));
    const input = 'billing: I was charged twice';
    const own = json(await decide(service.port, { model, input, instruction, choices: texts })) as never as {
      output: { choice: string; probabilities: Record<string, number> };
      usage: { input_tokens: number };
    };
    const labels = Object.keys(criteria);
    const expected = Object.fromEntries(labels.map((label, i) => [label, own.output.probabilities[texts[i] ?? '']]));
    t.deepEqual(answers[name]?.probabilities, expected);
    t.is(answers[name]?.choice, labels[texts.indexOf(own.output.choice)]);
    tokens += own.usage.input_tokens;
  }
  t.is(usage.input_tokens, tokens);

  const turned = typed
    .map(
      ([name, one]) =>
        [name, { ...one, criteria: Object.fromEntries(Object.entries(one.criteria).reverse()) }] as const,
    )
    .reverse();
  t.deepEqual(json(await systemOne(port, body(Object.fromEntries(turned), 'jev-latest'))), json(answer));
  const { at: _, ...listed } = { at: 0, model, input: 'billing: I was charged twice' };
  const asList = await openAi(port, {
    ...listed,
    questions: typed.map(([name, one]) => ({
      type: 'choice',
      name,
      instructions: one.instructions,
      choices: Object.entries(one.criteria).map(([value, text]) => ({
        value,
        ...(text === null ? {} : { description: text }),
      })),
    })),
  });
  for (const each of (json(asList) as never as { answers: { name: string; probabilities: object[] }[] }).answers) {
    const pairs = Object.entries(answers[each.name]?.probabilities ?? {});
    t.deepEqual(
      each.probabilities,
      pairs.map(([value, probability]) => ({ value, probability })),
    );
  }
  t.false(JSON.stringify(log).includes('charged'));
});

test('keys are passed on as they come, needed, or dropped, and are never logged', async (t) => {
  const key = mintKey();
  const mock = await startTestMock({ keys: { acme: key } });
  t.teardown(() => mock.stop());
  const asked = body({ q: ONE }, 'mock');
  const wrong = { authorization: `Bearer ${mintKey()}` };
  const right = { authorization: `Bearer ${key}` };
  const statuses: Record<string, readonly number[]> = {};
  for (const keys of ['pass', 'require', 'drop'] as const) {
    const { port, log } = await startBridge(t, mock.url, { keys });
    const outcomes = await Promise.all([{}, wrong, right].map((headers) => systemOne(port, asked, headers)));
    statuses[keys] = outcomes.map(({ status }) => status);
    if (keys === 'pass') {
      t.is(outcomes[1]?.headers['www-authenticate'], 'Bearer');
      t.deepEqual(
        (json(outcomes[1] as never) as { detail: { error_type: string } }).detail.error_type,
        'authentication_error',
      );
      const list = await send(port, { path: '/v1/models', headers: wrong });
      t.is((json(list) as { error?: { type: string } }).error?.type, 'authentication_error');
    }
    t.false(JSON.stringify(log).includes(key.slice(-12)));
  }
  t.deepEqual(statuses, { pass: [200, 401, 200], require: [401, 401, 200], drop: [200, 200, 200] });
});

test('what the service refuses is refused in the words of each form, with its Retry-After', async (t) => {
  const cases = [
    ['429;retry-after=7', 429, 'rate_limit_error', 429, '7'],
    ['overloaded;retry-after=3', 529, 'overloaded_error', 503, '3'],
    ['model_unavailable;retry-after=2', 503, 'server_error', 503, '2'],
    ['input_tokens_exceeded', 413, 'request_too_large', 400, undefined],
    ['unknown_model', 404, 'not_found', 404, undefined],
    ['deadline_exceeded;retry-after=none', 503, 'server_error', 503, undefined],
  ] as const;
  for (const [spec, ownStatus, type, status, retryAfter] of cases) {
    const mock = await startTestMock({ faults: [{ spec: faultOf(spec), rate: 1 }] });
    t.teardown(() => mock.stop());
    const { port } = await startBridge(t, mock.url);
    const own = await systemOne(port, body({ q: ONE, r: ONE }, 'mock'));
    t.deepEqual([own.status, own.headers['retry-after']], [ownStatus, retryAfter], spec);
    t.is((json(own) as { detail: { error_type: string } }).detail.error_type, type, own.text);
    const theirs = await openAi(port, { model: 'mock', input: 'x', questions: [PREDICATE] });
    t.deepEqual([theirs.status, theirs.headers['retry-after']], [status, retryAfter], theirs.text);
  }
});

test('a field that the service refuses has the name that it has in the body', async (t) => {
  const mock = await startTestMock({ limits: { inputTokens: 20, candidateTokens: 3, choices: 4 } });
  t.teardown(() => mock.stop());
  const { port } = await startBridge(t, mock.url);
  const long = { ...ONE, criteria: { a: null, 'one two three four five': null } };
  const own = await systemOne(
    port,
    body({ fine: ONE.criteria.billing === null ? { ...ONE, criteria: { a: null, b: null } } : ONE, long }, 'mock', 'x'),
  );
  t.deepEqual((json(own) as { detail: { loc: string[] }[] }).detail[0]?.loc, ['body', 'questions', 'long', 'criteria']);
  const many = { type: 'score', instructions: 'x', levels: [1, 2, 3, 4, 5].map((n) => ({ label: `l${n}` })) };
  const theirs = await openAi(port, { model: 'mock', input: 'x', questions: [PREDICATE, many] });
  t.like((json(theirs) as { error: object }).error, { param: 'questions[1].levels', code: 'too_many_choices' });
});

test('ids go both ways, and the addresses that a call came through reach the service', async (t) => {
  const service = await startService({ UMPIRE_TRUSTED_PROXIES: '127.0.0.1' });
  t.teardown(service.stop);
  const { port, log } = await startBridge(t, service.url);
  const given = await systemOne(port, body({ q: ONE }), { 'x-request-id': 'caller-7' });
  const made = await openAi(
    port,
    { model: 'minilm-l6', input: 'x', questions: [PREDICATE] },
    { 'x-request-id': 'not a\u00e4n id' },
  );
  const id = String(made.headers['x-request-id']);
  t.deepEqual([given.headers['x-request-id'], given.headers['x-typesafe-request-id']], ['caller-7', 'caller-7']);
  t.regex(id, /^req_[A-Za-z0-9_-]{16}$/);
  const requestIds = log.map(({ requestId }) => requestId);
  t.deepEqual(requestIds, ['caller-7', id]);
  const found = service.log.flatMap(({ callerRequestId }) => callerRequestId ?? []);
  t.deepEqual(found, ['caller-7', id]);
});

test('a deadline that the caller states, and its leaving, end the work at the service', async (t) => {
  const mock = await startTestMock({ faults: [{ spec: faultOf('delay=30000'), rate: 1 }] });
  t.teardown(() => mock.stop());
  const { port, log } = await startBridge(t, mock.url);
  const began = performance.now();
  const late = await openAi(
    port,
    { model: 'mock', input: 'x', questions: [PREDICATE] },
    { 'x-stainless-timeout': '1' },
  );
  t.like((json(late) as { error: object }).error, { code: 'deadline_exceeded' });
  t.is(late.status, 503);
  t.true(performance.now() - began < 20_000);

  const text = body({ q: ONE }, 'mock');
  const socket = connect(port, '127.0.0.1');
  socket.write(
    `POST /v1/systemone HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
  socket.destroy();
  await until(() => log.some(({ status }) => status === 499));
  t.pass();
});

test('both lists of models, one model, health, and what is not there', async (t) => {
  const models = [
    { id: 'mock', revision: 'r1', status: 'ready' },
    { id: 'gone', revision: 'r1', status: 'disabled' },
  ] as const;
  const mock = await startTestMock({ models });
  const { port, log } = await startBridge(t, mock.url, {
    aliases: new Map([
      ['jev-latest', 'mock'],
      ['none', 'gone'],
    ]),
  });
  const list = json(await send(port, { path: '/v1/models' })) as never as {
    data: { id: string }[];
    models: { name: string }[];
  };
  const ids = list.data.map(({ id }) => id);
  t.deepEqual(ids, ['mock', 'jev-latest']);
  const names = list.models.map(({ name }) => name);
  t.deepEqual(names, ['mock', 'jev-latest']);
  t.like(json(await send(port, { path: '/v1/models/jev-latest' })), { id: 'jev-latest', object: 'model', created: 0 });
  const statuses: Record<string, number> = {};
  for (const path of ['/v1/models/nope', '/health/live', '/health/ready', '/nope', '/v1/systemone'])
    statuses[path] = (await send(port, { path })).status;
  t.deepEqual(statuses, {
    '/v1/models/nope': 404,
    '/health/live': 200,
    '/health/ready': 200,
    '/nope': 404,
    '/v1/systemone': 405,
  });
  t.is((await send(port, { path: '/v1/systemone' })).headers.allow, 'POST');
  await mock.stop();
  const away = await systemOne(port, body({ q: ONE }, 'mock'));
  t.deepEqual([away.status, away.headers['retry-after']], [503, '1'], away.text);
  t.like(log.at(-2), { level: 'warn', err: { type: 'Error' }, requestId: away.headers['x-request-id'] });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  t.is((await send(port, { path: '/health/ready' })).status, 503);
  t.is((await send(port, { path: '/health/live' })).status, 200);
});

test('bodies have bounds of size, type and encoding, and a refused one does not end the connection', async (t) => {
  const mock = await startTestMock();
  t.teardown(() => mock.stop());
  const { port } = await startBridge(t, mock.url);
  const large = 'x'.repeat(1024 * 1024 + 1);
  t.is((await systemOne(port, large)).status, 413);
  const chunked = request({
    port,
    method: 'POST',
    path: '/v1/systemone',
    headers: { 'content-type': 'application/json' },
  });
  chunked.write(large);
  chunked.end();
  const [{ statusCode }] = await once(chunked, 'response');
  t.is(statusCode, 413);
  t.is((await systemOne(port, '{}', { 'content-type': 'text/plain' })).status, 415);
  t.is((await systemOne(port, '{}', { 'content-encoding': 'gzip' })).status, 415);
  t.is((await systemOne(port, '{}')).status, 422);
});

test('a bridge that is stopped finishes what it accepted', async (t) => {
  const mock = await startTestMock({ faults: [{ spec: faultOf('delay=500'), rate: 1 }] });
  t.teardown(() => mock.stop());
  const { port, log, stop } = await startBridge(t, mock.url);
  const headers = { 'content-type': 'application/json', expect: '100-continue' };
  const sent = request({ port, method: 'POST', path: '/v1/systemone', headers });
  sent.flushHeaders();
  // It is accepted once the bridge asks for its body.
  await once(sent, 'continue');
  sent.end(body({ q: ONE }, 'mock'));
  const answered = once(sent, 'response');
  await stop();
  const [{ statusCode, headers: received }] = await answered;
  t.deepEqual([statusCode, received.connection, log.length], [200, 'close', 1]);
});
