/**
 * Contract 5, what the conformance kit cannot try: a key that is well-formed and unknown, in every protocol; that
 * another owner's catalog makes the same work as none; and limits, by address and by key.
 */
import test from 'ava';
import { mintKey } from '../../src/domain/keys.ts';
import type { ScoreOutcome } from '../../src/engine/engine.ts';
import { type ExpectedError, isError, json, VALID_BODY } from '../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { issueKey, keyedService, startKeyedService } from '../support/keys.ts';
import { PROTOCOLS, type Protocol } from '../support/protocols.ts';
import { until } from '../support/redis.ts';
import { createScriptedEngine, descending } from '../support/scripted-engine.ts';

const service = await startKeyedService({}, { engine: createScriptedEngine() });
const grpc = openGrpc(service.port);
test.after.always(async () => {
  grpc.close();
  await service.stop();
});

const REQUIRED = { status: 401, code: 'authentication_required', param: null };

test('an unknown key is 401 on a decision, in every protocol and before the body is judged', async (t) => {
  const headers = { authorization: `Bearer ${mintKey()}` };
  for (const [protocol, { ask, encode }] of Object.entries<Protocol>(PROTOCOLS)) {
    for (const body of [encode(), Buffer.from('{')])
      t.is(await ask(service.port, body, { headers }), 'AUTHENTICATION_REQUIRED', protocol);
  }
  const odd = { body: '{', headers: { ...headers, 'content-type': 'text/plain' } };
  isError(t, await send(service.port, odd), REQUIRED);
  const { error, trailers } = await callGrpc(grpc.decisions, 'CreateDecision', VALID_BODY, { metadata: headers });
  t.is(error?.code, 16);
  t.like(errorDetails(trailers), { reason: 'AUTHENTICATION_REQUIRED', param: null, domain: 'umpire' });
  t.deepEqual(trailers.get('www-authenticate'), ['Bearer']);
});

test('the message tells a missing key from a bad one; the rest of the error does not', async (t) => {
  const { choices: _, ...rest } = VALID_BODY;
  const missing = await decide(service.port, { ...rest, catalog: 'c' });
  const bad = await decide(service.port, { ...rest, catalog: 'c' }, { authorization: `Bearer ${mintKey()}` });
  isError(t, missing, REQUIRED);
  isError(t, bad, REQUIRED);
  t.not((json(missing).error as { message: string }).message, (json(bad).error as { message: string }).message);
});

test('UMPIRE_ANONYMOUS=off: a decision needs a key in every protocol, before its body is read; models do not', async (t) => {
  const { port, key } = await keyedService(t, { UMPIRE_ANONYMOUS: 'off' });
  const headers = { authorization: `Bearer ${key}` };
  for (const [protocol, { ask, encode }] of Object.entries<Protocol>(PROTOCOLS)) {
    for (const body of [encode(), Buffer.from('{')]) t.is(await ask(port, body), 'AUTHENTICATION_REQUIRED', protocol);
    t.is(await ask(port, encode(), { headers }), 'OK', protocol);
  }
  for (const path of ['/', '/v1/models', '/health/ready']) t.is((await send(port, { path })).status, 200);
});

test('a foreign catalog is looked for as a missing one is', async (t) => {
  const asked: string[] = [];
  const noted = <T extends object>(of: T): T =>
    new Proxy(of, {
      get(store, name: string) {
        const method: unknown = Reflect.get(store, name);
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) => {
          asked.push(name);
          return method.apply(store, args);
        };
      },
    });
  const service = await startKeyedService({}, { engine: createScriptedEngine() }, (stores) => ({
    ...stores,
    catalogs: noted(stores.catalogs),
  }));
  t.teardown(service.stop);
  const { headers: foreign } = await issueKey(service.stores, 'umbrella');
  const body = JSON.stringify({ id: 'of-umbrella', model: 'minilm-l6', choices: ['a', 'b'] });
  t.is((await send(service.port, { path: '/v1/catalogs', headers: foreign, body })).status, 201);
  const headers = { authorization: `Bearer ${service.key}` };
  const work = async (id: string, method: string): Promise<readonly string[]> => {
    asked.length = 0;
    t.is((await send(service.port, { path: `/v1/catalogs/${id}`, headers, method })).status, 404);
    const decision = { ...VALID_BODY, choices: undefined, catalog: id };
    t.is((await decide(service.port, decision, headers)).status, 400);
    return [...asked];
  };
  for (const method of ['GET', 'DELETE']) {
    const missing = await work('of-nobody12', method);
    t.true(missing.length > 0);
    t.deepEqual(await work('of-umbrella', method), missing, method);
  }
});

const limited = (code: string): ExpectedError => ({ status: 429, code, param: null });

test('a rate: the burst is served, the next is 429 and says when', async (t) => {
  const { port } = await keyedService(t, { UMPIRE_RATE_ANONYMOUS: '1/h, burst 3' });
  for (let count = 0; count < 3; count++) t.is((await decide(port, VALID_BODY)).status, 200);
  const refused = await decide(port, VALID_BODY);
  isError(t, refused, limited('rate_limit_exceeded'));
  t.regex(refused.text, /too many requests: [\d.]+\/s, burst \d+ for an address \(UMPIRE_RATE_ANONYMOUS\)/);
  t.true(Math.abs(Number(refused.headers['retry-after']) - 3600) <= 60);
  t.is((await send(port, { path: '/v1/models' })).status, 200, 'discovery is not limited');
});

test('the same over gRPC: RESOURCE_EXHAUSTED with RetryInfo and pushback', async (t) => {
  const { port } = await keyedService(t, { UMPIRE_RATE_ANONYMOUS: '1/m, burst 1' });
  const grpc = openGrpc(port);
  t.teardown(() => grpc.close());
  t.is((await callGrpc(grpc.decisions, 'CreateDecision', VALID_BODY)).error, undefined);
  const { error, trailers } = await callGrpc(grpc.decisions, 'CreateDecision', VALID_BODY);
  t.is(error?.code, 8);
  const { reason, retrySeconds = 0 } = errorDetails(trailers);
  t.is(reason, 'RATE_LIMIT_EXCEEDED');
  t.true(retrySeconds > 1 && retrySeconds <= 60, `${retrySeconds}`);
  t.deepEqual(trailers.get('grpc-retry-pushback-ms'), [`${1000 * retrySeconds}`]);
});

test('a refused request is not read: no body, however bad, changes the answer', async (t) => {
  const { port } = await keyedService(t, { UMPIRE_RATE_ANONYMOUS: '1/h, burst 1' });
  await decide(port, VALID_BODY);
  isError(t, await send(port, { body: '{' }), limited('rate_limit_exceeded'));
});

test('keys are limited by key, anonymous callers by address, and neither by the other', async (t) => {
  const service = await keyedService(t, { UMPIRE_RATE_ANONYMOUS: '1/h, burst 1', UMPIRE_RATE_KEY: '1/h, burst 2' });
  const own = await issueKey(service.stores, 'acme', { rate: { perSecond: 0.001, burst: 3 } });
  const standard = { authorization: `Bearer ${service.key}` };
  const served = async (headers: { authorization?: string }): Promise<number> => {
    for (let count = 0; ; count++) if ((await decide(service.port, VALID_BODY, headers)).status !== 200) return count;
  };
  t.is(await served({}), 1);
  t.is(await served(standard), 2);
  t.is(await served(own.headers), 3);
});

test('as many decisions at one time as the limit, also when one of their callers leaves', async (t) => {
  const waiting: ((outcome: ScoreOutcome) => void)[] = [];
  const engine = createScriptedEngine(() => new Promise<ScoreOutcome>((resolve) => waiting.push(resolve)));
  const service = await keyedService(t, { UMPIRE_CONCURRENCY_ANONYMOUS: '2' }, engine);
  const running = [decide(service.port, VALID_BODY), decide(service.port, VALID_BODY)];
  await until(() => waiting.length >= 2);
  const refused = await decide(service.port, VALID_BODY);
  isError(t, refused, limited('concurrency_limit_exceeded'));
  t.regex(String(refused.headers['retry-after']), /^[1-9]\d*$/);
  const job = engine.jobs[0];
  if (job === undefined) return t.fail();
  const outcome = await descending(job, { signal: AbortSignal.any([]), deadline: 0, tenant: '', keyed: false });
  for (const resolve of waiting) resolve(outcome);
  const statuses = (await Promise.all(running)).map(({ status }) => status);
  t.deepEqual(statuses, [200, 200]);
  engine.script = descending;
  for (let count = 0; count < 5; count++) t.is((await decide(service.port, VALID_BODY)).status, 200);
});

test('a quota of decisions a day says when the day ends; catalogs do not count', async (t) => {
  const service = await keyedService(t, { UMPIRE_QUOTA_KEY: '2' });
  const headers = { authorization: `Bearer ${service.key}` };
  for (let count = 0; count < 5; count++)
    t.is((await send(service.port, { path: '/v1/catalogs/a', headers })).status, 404);
  for (let count = 0; count < 2; count++) t.is((await decide(service.port, VALID_BODY, headers)).status, 200);
  const refused = await decide(service.port, VALID_BODY, headers);
  isError(t, refused, limited('quota_exceeded'));
  const left = 86_400 - (Math.floor(Date.now() / 1_000) % 86_400);
  t.true(Math.abs(Number(refused.headers['retry-after']) - left) <= 2);
});

test('bad keys from one address are 401 sixty times a minute, then 429; a good one from there still works', async (t) => {
  const service = await keyedService(t, { UMPIRE_RATE_ANONYMOUS: '100000/s' });
  const bad = () => decide(service.port, VALID_BODY, { authorization: 'Bearer junk' });
  // One more is allowed for every second that this takes.
  let refused = await bad();
  let count = 1;
  for (; refused.status === 401 && count < 500; count++) refused = await bad();
  t.true(count > 60, `${count}`);
  isError(t, refused, limited('rate_limit_exceeded'));
  t.is(refused.headers['retry-after'], '1');
  t.is((await decide(service.port, VALID_BODY, { authorization: `Bearer ${service.key}` })).status, 200);
  t.is((await decide(service.port, VALID_BODY)).status, 200);
});

test('past the cap of catalogs it is 429 without Retry-After; over gRPC the pushback says never', async (t) => {
  const service = await keyedService(t, { UMPIRE_CATALOGS_PER_OWNER: '2' });
  const grpc = openGrpc(service.port);
  t.teardown(() => grpc.close());
  const headers = { authorization: `Bearer ${service.key}` };
  const draft = (id: string) => ({ id, model: 'minilm-l6', choices: ['a', 'b'] });
  const create = (id: string) => send(service.port, { path: '/v1/catalogs', headers, body: JSON.stringify(draft(id)) });
  for (const id of ['one', 'two']) t.is((await create(id)).status, 201);
  const refused = await create('three');
  isError(t, refused, limited('quota_exceeded'));
  t.is(refused.headers['retry-after'], undefined);
  const { error, trailers } = await callGrpc(grpc.catalogs, 'CreateCatalog', draft('four'), { metadata: headers });
  t.is(error?.code, 8);
  t.is(errorDetails(trailers).retrySeconds, undefined);
  t.deepEqual(trailers.get('grpc-retry-pushback-ms'), ['-1']);
});
