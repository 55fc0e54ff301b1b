/**
 * Contract 5: of keys what the conformance kit cannot try: one that is well-formed and unknown, in every protocol, and
 * that another owner's catalog makes the same work as none.
 */
import test from 'ava';
import { mintKey } from '../../src/domain/keys.ts';
import { isError, json, VALID_BODY } from '../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { issueKey, keyedService, startKeyedService } from '../support/keys.ts';
import { PROTOCOLS, type Protocol } from '../support/protocols.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';

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
