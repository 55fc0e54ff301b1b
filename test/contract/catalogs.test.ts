/** Contract 2.7, 3.2 and 4.4 to 4.6: of catalogs what the conformance kit does not try: odd requests over REST and gRPC, and the cap. */
import anyTest, { type TestFn } from 'ava';
import { isError, json, validBody } from '../support/answers.ts';
import { callGrpc, errorDetails, type GrpcClients, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { issueKey } from '../support/issue-key.ts';
import { type KeyedService, startKeyedService } from '../support/keys.ts';

const test = anyTest as TestFn<{ service: KeyedService; grpc: GrpcClients; headers: { authorization: string } }>;

test.before(async (t) => {
  const service = await startKeyedService({ UMPIRE_CATALOGS_PER_OWNER: '60' }, {});
  t.context = { service, grpc: openGrpc(service.port), headers: { authorization: `Bearer ${service.key}` } };
});
test.after.always(async ({ context: { service, grpc } }) => {
  grpc.close();
  await service.stop();
});

const draft = { id: 'teams', model: 'minilm-l6', choices: validBody.choices };
const path = (id: string): string => `/v1/catalogs/${id}`;

test('an id that exists is 409, and the first one stays; after a deletion the new one decides at once', async (t) => {
  const { service, headers } = t.context;
  const create = (choices: readonly string[]) =>
    send(service.port, {
      path: '/v1/catalogs',
      headers,
      body: JSON.stringify({ ...draft, id: 'twice', choices, version: '' }),
    });
  const question = { ...validBody, choices: undefined, catalog: 'twice' };
  t.is((await create(['billing', 'shipping'])).status, 201);
  isError(t, await create(['other', 'choices']), { status: 409, code: 'catalog_already_exists', param: 'id' });
  const before = json(await decide(service.port, question, headers)) as { output: { probabilities: object } };
  t.deepEqual(Object.keys(before.output.probabilities).sort(), ['billing', 'shipping']);
  await send(service.port, { method: 'DELETE', path: path('twice'), headers });
  t.like(json(await create(['money', 'parcels'])), { choices: ['money', 'parcels'], version: '' });
  const after = json(await decide(service.port, question, headers)) as { output: { probabilities: object } };
  t.deepEqual(Object.keys(after.output.probabilities).sort(), ['money', 'parcels']);
});

test('refused over gRPC', async (t) => {
  const { grpc, headers: metadata } = t.context;
  for (const [request, reason, param] of [
    [{ ...draft, id: '' }, 'MISSING_FIELD', 'id'],
    [{ ...draft, id: 'a/b' }, 'INVALID_CATALOG_ID', 'id'],
    [{ ...draft, model: '' }, 'MISSING_FIELD', 'model'],
    [{ ...draft, model: 'minilm-l6@r1' }, 'UNKNOWN_MODEL', 'model'],
    [{ ...draft, choices: ['a', 'a'] }, 'INVALID_CHOICES', 'choices'],
    [{ ...draft, version: 'x'.repeat(129) }, 'INVALID_VALUE', 'version'],
    [{ ...draft, visibility: 'public' }, 'INVALID_VALUE', 'visibility'],
  ] as const) {
    const refused = await callGrpc(grpc.catalogs, 'CreateCatalog', request, { metadata });
    t.is(refused.error?.code, 3, reason);
    t.like(errorDetails(refused.trailers), { reason, param });
  }
});

for (const [title, change, code, param] of [
  ['an empty model', { model: '' }, 'invalid_value', 'model'],
  ['a null model', { model: null }, 'invalid_type', 'model'],
  ['a version of another type', { version: 1 }, 'invalid_type', 'version'],
  ['a null version', { version: null }, 'invalid_type', 'version'],
  ['a date', { created_at: '2020-01-01' }, 'unknown_field', 'created_at'],
  ['a prototype', { ['__proto__']: { owner: 'x' } }, 'unknown_field', '__proto__'],
  ['several faults', { id: '..', model: '', choices: [], owner: 'x' }, 'unknown_field', 'owner'],
  ['several faults in fields', { id: '..', model: '', choices: [] }, 'invalid_catalog_id', 'id'],
] as const) {
  test(`refused: ${title}`, async (t) => {
    const { service, headers } = t.context;
    const body = JSON.stringify({ ...draft, id: 'never', ...change });
    isError(t, await send(service.port, { path: '/v1/catalogs', headers, body }), { status: 400, code, param });
    t.is((await send(service.port, { path: path('never'), headers })).status, 404);
  });
}

for (const odd of [
  'a%2Fb',
  '%2e',
  '%2E%2e',
  '%2e%2e%2fother',
  'a%00',
  '%',
  '%zz',
  '%c3%28',
  'a%20b',
  'x'.repeat(129),
  'a:b',
  '%7Bacme%7D',
]) {
  test(`the path ${odd.slice(0, 20)} is no catalog's`, async (t) => {
    const { service, headers } = t.context;
    for (const method of ['GET', 'DELETE']) {
      const { status } = await send(service.port, { method, path: path(odd), headers });
      t.true(status === 404 || status === 400, `${method} ${status}`);
    }
  });
}

test('past the cap it is 429 without Retry-After; over gRPC the pushback says never', async (t) => {
  const { service, grpc } = t.context;
  const { headers } = await issueKey(service.stores, 'hoarder');
  let refused = await send(service.port, {
    path: '/v1/catalogs',
    headers,
    body: JSON.stringify({ ...draft, id: 'fill' }),
  });
  for (let count = 0; refused.status === 201 && count < 100; count++) {
    refused = await send(service.port, {
      path: '/v1/catalogs',
      headers,
      body: JSON.stringify({ ...draft, id: `fill-${count}` }),
    });
  }
  isError(t, refused, { status: 429, code: 'quota_exceeded', param: null });
  t.is(refused.headers['retry-after'], undefined);
  const { error, trailers } = await callGrpc(
    grpc.catalogs,
    'CreateCatalog',
    { ...draft, id: 'more' },
    { metadata: headers },
  );
  t.is(error?.code, 8);
  t.is(errorDetails(trailers).retrySeconds, undefined);
  t.deepEqual(trailers.get('grpc-retry-pushback-ms'), ['-1']);
});
