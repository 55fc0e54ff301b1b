/** Contract 2.7, 3.2 and 4.4 to 4.6: catalogs over REST and gRPC, and decisions with them, on the real engine. */
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

test('created, read, used in a decision, deleted, gone', async (t) => {
  const { service, headers } = t.context;
  const expected = { ...draft, version: '1', visibility: 'private' };
  const created = await send(service.port, { path: '/v1/catalogs', headers, body: JSON.stringify(draft) });
  t.is(created.status, 201);
  t.is(created.headers.location, '/v1/catalogs/teams');
  t.deepEqual(json(created), expected);
  const read = await send(service.port, { path: path('teams'), headers });
  t.is(read.status, 200);
  t.deepEqual(json(read), expected);

  const { choices: _choices, ...question } = validBody;
  const stored = await decide(service.port, { ...question, catalog: 'teams' }, headers);
  const inline = await decide(service.port, validBody);
  t.is(stored.status, 200);
  t.deepEqual(json(stored).output, json(inline).output);
  t.deepEqual(json(stored).usage, json(inline).usage);

  const deleted = await send(service.port, { method: 'DELETE', path: path('teams'), headers });
  t.is(deleted.status, 204);
  t.is(deleted.text, '');
  isError(t, await send(service.port, { path: path('teams'), headers }), {
    status: 404,
    code: 'catalog_not_found',
    param: 'id',
  });
  const unknown = { status: 400, code: 'unknown_catalog', param: 'catalog' };
  isError(t, await decide(service.port, { ...question, catalog: 'teams' }, headers), unknown);
});

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

test('the same over gRPC', async (t) => {
  const { grpc, headers: metadata } = t.context;
  const call = (method: string, request: object, given: Record<string, string> = metadata) =>
    callGrpc(grpc.catalogs, method, request, { metadata: given });
  const expected = {
    catalog: { ...draft, id: 'over-grpc', choices: [...draft.choices], version: 'v2', visibility: 'private' },
  };
  t.deepEqual((await call('CreateCatalog', { ...draft, id: 'over-grpc', version: 'v2' })).response, expected);
  t.deepEqual((await call('GetCatalog', { id: 'over-grpc' })).response, expected);
  const again = await call('CreateCatalog', { ...draft, id: 'over-grpc' });
  t.is(again.error?.code, 6);
  t.like(errorDetails(again.trailers), { reason: 'CATALOG_ALREADY_EXISTS', param: 'id' });
  const decided = await callGrpc<{ decision: { output: { choice: string } } }>(
    grpc.decisions,
    'CreateDecision',
    { ...validBody, choices: [], catalog: 'over-grpc' },
    { metadata },
  );
  t.is(decided.response?.decision.output.choice, 'billing');
  t.deepEqual((await call('DeleteCatalog', { id: 'over-grpc' })).response, {});
  const missing = await call('GetCatalog', { id: 'over-grpc' });
  t.is(missing.error?.code, 5);
  t.like(errorDetails(missing.trailers), { reason: 'CATALOG_NOT_FOUND', param: 'id' });
  for (const [request, reason, param] of [
    [{ ...draft, id: '' }, 'MISSING_FIELD', 'id'],
    [{ ...draft, id: 'a/b' }, 'INVALID_CATALOG_ID', 'id'],
    [{ ...draft, model: '' }, 'MISSING_FIELD', 'model'],
    [{ ...draft, model: 'minilm-l6@r1' }, 'UNKNOWN_MODEL', 'model'],
    [{ ...draft, choices: ['a', 'a'] }, 'INVALID_CHOICES', 'choices'],
    [{ ...draft, version: 'x'.repeat(129) }, 'INVALID_VALUE', 'version'],
    [{ ...draft, visibility: 'public' }, 'INVALID_VALUE', 'visibility'],
  ] as const) {
    const refused = await call('CreateCatalog', request);
    t.is(refused.error?.code, 3, reason);
    t.like(errorDetails(refused.trailers), { reason, param });
  }
  const anonymous = await call('GetCatalog', { id: 'a' }, {});
  t.is(anonymous.error?.code, 16);
  t.like(errorDetails(anonymous.trailers), { reason: 'AUTHENTICATION_REQUIRED', param: null });
});

const invalidId = { status: 400, code: 'invalid_catalog_id', param: 'id' };
const ids = [
  '',
  'x'.repeat(129),
  'a b',
  'a/b',
  'é',
  'a\n',
  '.',
  '..',
  'a:b',
  '{a}',
  'a\0',
  null,
  7,
  true,
  [],
  {},
  ['a'],
];
for (const id of ids) {
  test(`id ${JSON.stringify(id).slice(0, 40)} is refused`, async (t) => {
    const { service, headers } = t.context;
    isError(
      t,
      await send(service.port, { path: '/v1/catalogs', headers, body: JSON.stringify({ ...draft, id }) }),
      invalidId,
    );
  });
}

for (const [title, change, code, param] of [
  ['no id', { id: undefined }, 'missing_field', 'id'],
  ['no model', { model: undefined }, 'missing_field', 'model'],
  ['no choices', { choices: undefined }, 'missing_field', 'choices'],
  ['an empty model', { model: '' }, 'invalid_value', 'model'],
  ['a null model', { model: null }, 'invalid_type', 'model'],
  ['an unknown model', { model: 'nobody' }, 'unknown_model', 'model'],
  ['a qualified model', { model: 'minilm-l6@r1' }, 'unknown_model', 'model'],
  ['choices of another type', { choices: 'a,b' }, 'invalid_type', 'choices'],
  ['choices with a number', { choices: ['a', 1] }, 'invalid_type', 'choices'],
  ['no choice', { choices: [] }, 'invalid_choices', 'choices'],
  ['one choice', { choices: ['a'] }, 'invalid_choices', 'choices'],
  ['301 choices', { choices: Array.from({ length: 301 }, (_, index) => `c${index}`) }, 'invalid_choices', 'choices'],
  ['a choice twice', { choices: ['a', 'b', 'a'] }, 'invalid_choices', 'choices'],
  ['an empty choice', { choices: ['a', ''] }, 'invalid_choices', 'choices'],
  ['a choice that is too long', { choices: ['a', 'word '.repeat(2_000)] }, 'candidate_tokens_exceeded', 'choices'],
  ['a version of another type', { version: 1 }, 'invalid_type', 'version'],
  ['a null version', { version: null }, 'invalid_type', 'version'],
  ['a long version', { version: 'x'.repeat(129) }, 'invalid_value', 'version'],
  ['another visibility', { visibility: 'public' }, 'invalid_value', 'visibility'],
  ['an empty visibility', { visibility: '' }, 'invalid_value', 'visibility'],
  ['an owner', { owner: 'somebody' }, 'unknown_field', 'owner'],
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

test('every kind of choice comes back as it was sent, and decides as inline', async (t) => {
  const { service, headers } = t.context;
  const choices = ['__proto__', 'constructor', '10', ' ', 'é', 'e\u0301', '🟢', '[SEP]', '</s>', '"\\\n'];
  const body = JSON.stringify({ ...draft, id: 'odd', choices });
  t.deepEqual(json(await send(service.port, { path: '/v1/catalogs', headers, body })).choices, choices);
  const stored = await decide(service.port, { ...validBody, choices: undefined, catalog: 'odd' }, headers);
  const inline = await decide(service.port, { ...validBody, choices });
  t.is(stored.text.replace(/dec_[^"]+/, ''), inline.text.replace(/dec_[^"]+/, ''));
});

test('a catalog needs its key, and the model that it belongs to', async (t) => {
  const { service, headers } = t.context;
  await send(service.port, { path: '/v1/catalogs', headers, body: JSON.stringify({ ...draft, id: 'mine' }) });
  const question = { ...validBody, choices: undefined, catalog: 'mine' };
  const required = { status: 401, code: 'authentication_required', param: null };
  isError(t, await decide(service.port, question), required);
  for (const [method, at] of [
    ['GET', path('mine')],
    ['DELETE', path('mine')],
    ['POST', '/v1/catalogs'],
  ] as const) {
    isError(t, await send(service.port, { method, path: at }), required, method);
    isError(
      t,
      await send(service.port, { method, path: at, headers: { authorization: 'Bearer junk' } }),
      required,
      method,
    );
  }
  t.is((await decide(service.port, { ...question, model: 'minilm-l6@r1' }, headers)).status, 200);
  for (const catalog of ['theirs', '..', '../mine', 'x'.repeat(129), 'mine\n', 'a b']) {
    const answer = await decide(service.port, { ...question, catalog }, headers);
    isError(t, answer, { status: 400, code: 'unknown_catalog', param: 'catalog' }, catalog);
  }
});

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
