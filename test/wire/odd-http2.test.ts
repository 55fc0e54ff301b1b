import test from 'ava';
import { type Answer, type ExpectedError, isError, VALID_BODY } from '../support/answers.ts';
import { openSession, sendH2 } from '../support/http.ts';
import { until } from '../support/redis.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService } from '../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
const session = openSession(service.port);
test.after.always(async () => {
  session.destroy();
  await service.stop();
});

const body = JSON.stringify(VALID_BODY);
const NOT_FOUND: ExpectedError = { status: 404, code: 'route_not_found', param: null };

const CASES: Readonly<Record<string, readonly [call: Parameters<typeof sendH2>[1], 200 | ExpectedError]>> = {
  'headers of 15 KB': [{ body, headers: { x: 'x'.repeat(15_000) } }, 200],
  'headers of 20 KB': [
    { body, headers: { x: 'x'.repeat(20_000) } },
    { status: 431, code: 'headers_too_large', param: null },
  ],
  'Expect: 100-continue': [{ body, headers: { expect: '100-continue' } }, 200],
  'an unknown Expect': [
    { body, headers: { expect: '200-ok' } },
    { status: 417, code: 'expectation_failed', param: null },
  ],
  'a fragment': [{ path: '/v1/models#x' }, NOT_FOUND],
  'another scheme': [{ path: '/v1/models', headers: { ':scheme': 'gopher' } }, 200],
  'an unknown method': [
    { path: '/v1/models', method: 'BREW' },
    { status: 405, code: 'method_not_allowed', param: null },
  ],
  'a key with a space behind it': [
    { body, headers: { authorization: 'Bearer nothing ' } },
    { status: 401, code: 'authentication_required', param: null },
  ],
  'only a space for a key': [
    { body, headers: { authorization: ' ' } },
    { status: 401, code: 'authentication_required', param: null },
  ],
  '10 MB where there is no body': [{ path: '/none', body: 'x'.repeat(10 << 20) }, NOT_FOUND],
};

for (const [what, [call, expected]] of Object.entries(CASES)) {
  test(what, async (t) => {
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

test('CONNECT', async (t) => {
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
  const answers = await Promise.all(Array.from({ length: 250 }, () => sendH2(session, { body })));
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  session.destroy();
});
