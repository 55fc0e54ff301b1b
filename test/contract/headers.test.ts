/** What answers over REST carry in their headers, and what they do not. */
import test from 'ava';
import { KEEP_ALIVE_TIMEOUT } from '../../src/wire/http/byte-collector.ts';
import { VALID_BODY } from '../support/answers.ts';
import { decide, send } from '../support/http.ts';
import { issueKey } from '../support/keys.ts';
import { openEmbedded } from '../support/open-stores.ts';
import { startService } from '../support/service.ts';

const stores = await openEmbedded();
const service = await startService({}, { stores });
test.after.always(async () => {
  await service.stop();
  await stores.close();
});

const ALWAYS = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'x-request-id'];

test('a decision', async (t) => {
  const { headers, text } = await decide(service.port, VALID_BODY);
  t.is(headers['content-type'], 'application/json');
  t.is(headers['content-length'], String(Buffer.byteLength(text)));
  t.deepEqual(Object.keys(headers).toSorted(), [...ALWAYS, 'x-umpire-languages']);
});

test('an idle connection is kept for longer than proxies keep theirs, and the answer says how long', async (t) => {
  t.true(KEEP_ALIVE_TIMEOUT > 60_000);
  const { headers } = await send(service.port, { path: '/health/live' });
  t.is(headers['keep-alive'], `timeout=${KEEP_ALIVE_TIMEOUT / 1000}`);
});

test('a decision for a key says where its time went; one without does not', async (t) => {
  const { headers: key } = await issueKey(stores, 'owner');
  const { headers } = await send(service.port, { body: JSON.stringify(VALID_BODY), headers: key });
  t.regex(String(headers['server-timing']), /^queue;dur=\d+\.\d\d, tokenize;dur=\d+\.\d\d, infer;dur=\d+\.\d\d$/);
  t.deepEqual(Object.keys(headers).toSorted(), [...ALWAYS, 'server-timing', 'x-umpire-languages'].sort());
});

test('a body of characters beyond ASCII has its length in bytes', async (t) => {
  for (const choices of [['ja', 'größer 包裹'], Array.from({ length: 40 }, (_, index) => `größer 包裹 ${index}`)]) {
    const { headers, text } = await decide(service.port, { ...VALID_BODY, choices });
    t.is(headers['content-length'], String(Buffer.byteLength(text)));
  }
});

test('errors have no headers of a decision, and only those of their own', async (t) => {
  const { port } = service;
  const bad = await decide(port, {});
  for (const name of ['server-timing', 'retry-after', 'www-authenticate', 'allow', 'location'])
    t.is(bad.headers[name], undefined, name);
  const method = await send(port, { path: '/v1/decisions' });
  t.is(method.headers.allow, 'POST');
  t.is(method.headers['www-authenticate'], undefined);
});

test('nothing says what the server is made of', async (t) => {
  const { port } = service;
  for (const path of ['/v1/models', '/none', '/health/live']) {
    const { headers } = await send(port, { path });
    for (const name of ['server', 'x-powered-by']) t.is(headers[name], undefined);
  }
});

test('a caller’s own X-Request-ID is logged, cut, and not sent back', async (t) => {
  const own = `theirs-${'x'.repeat(500)}`;
  const { headers } = await decide(service.port, VALID_BODY, { 'x-request-id': own });
  t.regex(String(headers['x-request-id']), /^req_[A-Za-z0-9_-]+$/);
  const line = service.log.find(({ requestId }) => requestId === headers['x-request-id']);
  t.is(line?.callerRequestId, own.slice(0, 128));
});
