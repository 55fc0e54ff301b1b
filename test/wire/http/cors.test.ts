/** What pages of other origins may do from a browser. */
import test from 'ava';
import { json, VALID_BODY } from '../../support/answers.ts';
import { DECIDE, decide, openSession, send, sendH2 } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const APP = 'https://app.example';
const scripted = () => ({ engine: createScriptedEngine() });
const service = await startService({ UMPIRE_CORS_ORIGINS: `${APP}, http://localhost:3000` }, scripted());
const closed = await startService({}, scripted());
test.after.always(async () => {
  await service.stop();
  await closed.stop();
});

const preflight = (origin: string, headers = 'content-type') => ({
  method: 'OPTIONS',
  headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': headers },
});

test('a page of a named origin may decide, and reads the answer and its headers, in both versions of HTTP', async (t) => {
  const allowed = await send(service.port, preflight(APP));
  t.is(allowed.status, 204);
  t.like(allowed.headers, {
    'access-control-allow-origin': APP,
    'access-control-allow-methods': 'GET, HEAD, POST',
    'access-control-max-age': '7200',
    vary: 'Origin',
  });
  t.regex(String(allowed.headers['access-control-allow-headers']), /Content-Type/);
  const decided = await decide(service.port, VALID_BODY, { origin: APP });
  t.is(decided.status, 200);
  t.is(decided.headers['access-control-allow-origin'], APP);
  t.regex(String(decided.headers['access-control-expose-headers']), /X-Request-ID, Retry-After/);
  // A page has to be able to read why it was refused.
  const refused = await send(service.port, { body: '{', headers: { origin: 'http://localhost:3000' } });
  t.is(refused.status, 400);
  t.is(refused.headers['access-control-allow-origin'], 'http://localhost:3000');
  const connect = await send(service.port, {
    path: DECIDE,
    body: JSON.stringify(VALID_BODY),
    headers: { origin: APP },
  });
  t.is(connect.status, 200);
  t.is(connect.headers['access-control-allow-origin'], APP);
  const session = openSession(service.port);
  t.teardown(() => session.destroy());
  t.is((await sendH2(session, preflight(APP))).status, 204);
});

test('no page may send a key or credentials, and no other origin anything', async (t) => {
  const { headers } = await send(service.port, preflight(APP, 'authorization'));
  t.notRegex(String(headers['access-control-allow-headers']), /authorization|\*/i);
  t.is(headers['access-control-allow-credentials'], undefined);
  for (const origin of ['https://app.example.evil', 'http://app.example', 'null', `${APP}/`]) {
    const answer = await send(service.port, preflight(origin));
    t.is(answer.status, 405, origin);
    t.is(answer.headers['access-control-allow-origin'], undefined);
    t.is(answer.headers.vary, 'Origin');
    t.is((await decide(service.port, VALID_BODY, { origin })).headers['access-control-allow-origin'], undefined);
  }
});

test('without origins nothing is allowed: a preflight gets 405 as ever', async (t) => {
  const answer = await send(closed.port, preflight(APP));
  t.is(answer.status, 405);
  t.is((json(answer).error as { code: string }).code, 'method_not_allowed');
  for (const name of Object.keys(answer.headers)) t.notRegex(name, /^(access-control|vary)/);
});
