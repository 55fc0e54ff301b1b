/**
 * `/` and `/openapi.json`, the way there from a path that is none; and what pages of other origins may do
 * from a browser.
 */
import { readFileSync } from 'node:fs';
import test from 'ava';
import type { ScoreOutcome } from '../../../src/engine/engine.ts';
import { VERSION } from '../../../src/version.ts';
import { json, VALID_BODY } from '../../support/answers.ts';
import { callGrpc, openGrpc } from '../../support/grpc.ts';
import { DECIDE, decide, openSession, send, sendH2 } from '../../support/http.ts';
import { until } from '../../support/redis.ts';
import { createScriptedEngine, descending } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const engine = createScriptedEngine();
const service = await startService({}, { engine });
const APP = 'https://app.example';
const open = await startService({ UMPIRE_CORS_ORIGINS: `${APP}, http://localhost:3000` }, { engine });
test.after.always(() => Promise.all([service.stop(), open.stop()]));
const get = (path: string, method = 'GET') => send(service.port, { path, method });
const generated = JSON.parse(readFileSync(new URL('../../../gen/openapi.json', import.meta.url), 'utf8'));

test('the front page says which version this is, and its links lead somewhere', async (t) => {
  const { status, headers, text } = await get('/');
  t.is(status, 200);
  t.is(headers['content-type'], 'application/json');
  t.regex(String(headers['x-request-id']), /^req_/);
  const front = JSON.parse(text) as Record<string, string>;
  t.like(front, { service: 'umpire', version: VERSION, contract: generated.info.version });
  const { served } = JSON.parse(text) as { served: { model: string; languages: unknown }[] };
  t.deepEqual(
    served.map(({ model, languages }) => [model, languages]),
    [
      ['gone@r1', null],
      ['minilm-l6@r1', ['en']],
      ['minilm-l6@r2', null],
      ['off@r1', null],
    ],
  );
  for (const path of [front.openapi, front.models]) t.is((await get(String(path))).status, 200, path);
});

test('the document is the generated one, for the address that it was asked at', async (t) => {
  const { status, text } = await get('/openapi.json');
  t.is(status, 200);
  const { servers, 'x-umpire-models': models, ...served } = JSON.parse(text);
  t.deepEqual(models[1], { model: 'minilm-l6@r1', plain_name: true, status: 'ready', languages: ['en'] });
  const { servers: _, ...expected } = generated;
  t.deepEqual(served, expected);
  const found = servers.map(({ url }: { url: string }) => url);
  t.deepEqual(found, ['/']);
});

test('a decision and a model say which languages that model was measured in, and what it could not read', async (t) => {
  const said = ({ headers }: { headers: object }) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => /^x-umpire/.test(name)));
  t.deepEqual(said(await get('/v1/models/minilm-l6')), { 'x-umpire-languages': 'en' });
  t.deepEqual(said(await get('/v1/models/minilm-l6@r2')), {});
  t.deepEqual(said(await decide(service.port, VALID_BODY)), { 'x-umpire-languages': 'en' });
  engine.script = (job, terms) => ({ ...descending(job, terms), unread: { share: 0.618, over: true } }) as ScoreOutcome;
  const unread = { 'x-umpire-languages': 'en', 'x-umpire-unread': '0.62' };
  t.deepEqual(said(await decide(service.port, VALID_BODY)), unread);
  t.deepEqual(said(await send(service.port, { path: DECIDE, body: JSON.stringify(VALID_BODY) })), unread);
  engine.script = descending;
});

test('a probe that says what the last one said is told at debug, and a failed gRPC call with the status of REST', async (t) => {
  const engine = createScriptedEngine();
  const watched = await startService({ LOG_LEVEL: 'debug' }, { engine });
  t.teardown(watched.stop);
  const probe = () => send(watched.port, { path: '/health/ready' });
  for (const ready of [true, true, false, false, true]) {
    engine.isReady = ready;
    await probe();
  }
  const grpc = openGrpc(watched.port);
  await callGrpc(grpc.decisions, 'CreateDecision', { ...VALID_BODY, choices: ['one'] });
  grpc.close();
  const lines = () => watched.log.filter(({ msg }) => msg === 'request');
  await until(() => lines().length === 6);
  t.deepEqual(
    lines().map(({ level, status }) => `${level} ${status}`),
    ['info 200', 'debug 200', 'info 503', 'debug 503', 'info 200', 'info 400'],
  );
});

test('HEAD has no body, other methods are refused, other paths are shown the way', async (t) => {
  for (const path of ['/', '/openapi.json']) {
    const { status, text, headers } = await get(path, 'HEAD');
    t.is(status, 200);
    t.is(text, '');
    t.true(Number(headers['content-length']) > 50);
    const refused = await get(path, 'POST');
    t.is(refused.status, 405);
    t.is(refused.headers.allow, 'GET, HEAD');
    t.regex(refused.text, /this resource has only GET, HEAD/);
  }
  for (const path of ['/v1', '/v2/decisions', '/openapi.yaml']) {
    const { status, text } = await get(path);
    t.is(status, 404);
    t.regex(JSON.parse(text).error.message, /GET \//);
  }
  for (const [path, hint] of [
    ['/v1/decisions/', /; \/v1\/decisions has no slash at its end; /],
    ['/v1/models/geheim/', /; \/v1\/models\/\{model\} has no slash at its end; /],
    ['/health', /; health is at \/health\/live and \/health\/ready; /],
    ['/healthz', /; health is at /],
  ] as const) {
    const { message } = JSON.parse((await get(path)).text).error;
    t.regex(message, hint);
    t.notRegex(message, /geheim/);
  }
});

const preflight = (origin: string, headers = 'content-type') => ({
  method: 'OPTIONS',
  headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': headers },
});

test('a page of a named origin may decide, and reads the answer and its headers, in both versions of HTTP', async (t) => {
  const allowed = await send(open.port, preflight(APP));
  t.is(allowed.status, 204);
  t.like(allowed.headers, {
    'access-control-allow-origin': APP,
    'access-control-allow-methods': 'GET, HEAD, POST',
    'access-control-max-age': '7200',
    vary: 'Origin',
  });
  t.regex(String(allowed.headers['access-control-allow-headers']), /Content-Type/);
  const decided = await decide(open.port, VALID_BODY, { origin: APP });
  t.is(decided.status, 200);
  t.is(decided.headers['access-control-allow-origin'], APP);
  t.regex(String(decided.headers['access-control-expose-headers']), /X-Request-ID, Retry-After/);
  // A page has to be able to read why it was refused.
  const refused = await send(open.port, { body: '{', headers: { origin: 'http://localhost:3000' } });
  t.is(refused.status, 400);
  t.is(refused.headers['access-control-allow-origin'], 'http://localhost:3000');
  const connect = await send(open.port, {
    path: DECIDE,
    body: JSON.stringify(VALID_BODY),
    headers: { origin: APP },
  });
  t.is(connect.status, 200);
  t.is(connect.headers['access-control-allow-origin'], APP);
  const session = openSession(open.port);
  t.teardown(() => session.destroy());
  t.is((await sendH2(session, preflight(APP))).status, 204);
});

test('no page may send a key or credentials, and no other origin anything', async (t) => {
  const { headers } = await send(open.port, preflight(APP, 'authorization'));
  t.notRegex(String(headers['access-control-allow-headers']), /authorization|\*/i);
  t.is(headers['access-control-allow-credentials'], undefined);
  for (const origin of ['https://app.example.evil', 'http://app.example', 'null', `${APP}/`]) {
    const answer = await send(open.port, preflight(origin));
    t.is(answer.status, 405, origin);
    t.is(answer.headers['access-control-allow-origin'], undefined);
    t.is(answer.headers.vary, 'Origin');
    t.is((await decide(open.port, VALID_BODY, { origin })).headers['access-control-allow-origin'], undefined);
  }
});

test('without origins nothing is allowed: a preflight gets 405 as ever', async (t) => {
  const answer = await send(service.port, preflight(APP));
  t.is(answer.status, 405);
  t.is((json(answer).error as { code: string }).code, 'method_not_allowed');
  for (const name of Object.keys(answer.headers)) t.notRegex(name, /^(access-control|vary)/);
});
