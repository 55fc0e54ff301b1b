/** Contract 5: a decision needs no key, and a key that is present must be good, in every protocol and before the body is read. */
import anyTest, { type TestFn } from 'ava';
import { mintKey } from '../../src/domain/keys.ts';
import { isError, json, validBody } from '../support/answers.ts';
import { callGrpc, errorDetails, type GrpcClients, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { type KeyedService, startKeyedService } from '../support/keys.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';

const test = anyTest as TestFn<{ service: KeyedService; grpc: GrpcClients }>;

test.before(async (t) => {
  const service = await startKeyedService({}, { engine: createScriptedEngine() });
  t.context = { service, grpc: openGrpc(service.port) };
});
test.after.always(async ({ context: { service, grpc } }) => {
  grpc.close();
  await service.stop();
});

const required = { status: 401, code: 'authentication_required', param: null };
const broken = (key: string): string => `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;

const refused: Readonly<Record<string, (key: string) => string>> = {
  'an unknown key': () => `Bearer ${mintKey()}`,
  'a key with a wrong checksum': (key) => `Bearer ${broken(key)}`,
  'half a key': (key) => `Bearer ${key.slice(0, 20)}`,
  'a key and more': (key) => `Bearer ${key} ${key}`,
  'two keys with a comma': (key) => `Bearer ${key}, Bearer ${key}`,
  'another scheme': (key) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
  'no scheme': (key) => key,
  'no key': () => 'Bearer',
  'only spaces': () => 'Bearer  ',
  'nothing at all': () => '',
  'a key in quotes': (key) => `Bearer "${key}"`,
  'ten thousand characters': () => `Bearer ${'x'.repeat(10_000)}`,
  'bytes above ASCII': () => 'Bearer \u00e9\u00ff',
};

for (const [what, authorization] of Object.entries(refused)) {
  test(`${what} is 401 on a decision, never served as anonymous`, async (t) => {
    const { service, grpc } = t.context;
    const headers = { authorization: authorization(service.key) };
    isError(t, await decide(service.port, validBody, headers), required);
    isError(t, await decide(service.port, { not: 'valid' }, headers), required, 'before the body is judged');
    isError(
      t,
      await send(service.port, { body: '{', headers: { ...headers, 'content-type': 'text/plain' } }),
      required,
    );
    const connect = await send(service.port, {
      path: '/umpire.v1.DecisionService/CreateDecision',
      body: '{',
      headers,
    });
    t.is(connect.status, 401);
    t.is(json(connect).code, 'unauthenticated');
    t.is(connect.headers['www-authenticate'], 'Bearer');
    t.regex(connect.text, /AUTHENTICATION_REQUIRED/);
    if (/[^ -~]/.test(headers.authorization)) return;
    const { error, trailers } = await callGrpc(grpc.decisions, 'CreateDecision', validBody, { metadata: headers });
    t.is(error?.code, 16);
    t.like(errorDetails(trailers), { reason: 'AUTHENTICATION_REQUIRED', param: null, domain: 'umpire' });
    t.deepEqual(trailers.get('www-authenticate'), ['Bearer']);
  });
}

for (const [what, header] of Object.entries({
  'as documented': (key: string) => `Bearer ${key}`,
  'in lower case': (key: string) => `bearer ${key}`,
  'in capitals': (key: string) => `BEARER ${key}`,
  'with more spaces': (key: string) => `Bearer   ${key}`,
})) {
  test(`a live key ${what} is served`, async (t) => {
    const { service, grpc } = t.context;
    const headers = { authorization: header(service.key) };
    t.is((await decide(service.port, validBody, headers)).status, 200);
    t.is((await send(service.port, { path: '/v1/models', headers })).status, 200);
    const { error } = await callGrpc(grpc.decisions, 'CreateDecision', validBody, { metadata: headers });
    t.is(error, undefined);
  });
}

test('the message tells a missing key from a bad one; the rest of the error does not', async (t) => {
  const { port } = t.context.service;
  const { choices: _, ...rest } = validBody;
  const missing = await decide(port, { ...rest, catalog: 'c' });
  const bad = await decide(port, { ...rest, catalog: 'c' }, { authorization: `Bearer ${mintKey()}` });
  isError(t, missing, required);
  isError(t, bad, required);
  t.not((json(missing).error as { message: string }).message, (json(bad).error as { message: string }).message);
});

test('a catalog that the key does not have is an unknown one', async (t) => {
  const { service, grpc } = t.context;
  const { choices: _, ...rest } = validBody;
  const headers = { authorization: `Bearer ${service.key}` };
  for (const catalog of ['c', '../c', 'ü', '__proto__', 'x'.repeat(5000), '{acme}:catalog:c', '\0'])
    isError(t, await decide(service.port, { ...rest, catalog }, headers), {
      status: 400,
      code: 'unknown_catalog',
      param: 'catalog',
    });
  const { error, trailers } = await callGrpc(
    grpc.decisions,
    'CreateDecision',
    { ...rest, catalog: 'c' },
    { metadata: headers },
  );
  t.is(error?.code, 3);
  t.like(errorDetails(trailers), { reason: 'UNKNOWN_CATALOG', param: 'catalog' });
});
