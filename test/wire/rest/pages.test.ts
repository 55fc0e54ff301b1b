/** `/` and `/openapi.json`, and the way there from a path that is none. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { VERSION } from '../../../src/version.ts';
import { send } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const service = await startService({}, { engine: createScriptedEngine() });
test.after.always(() => service.stop());
const get = (path: string, method = 'GET') => send(service.port, { path, method });
const generated = JSON.parse(readFileSync(new URL('../../../gen/openapi.json', import.meta.url), 'utf8'));

test('the front page says which version this is, and its links lead somewhere', async (t) => {
  const { status, headers, text } = await get('/');
  t.is(status, 200);
  t.is(headers['content-type'], 'application/json');
  t.regex(String(headers['x-request-id']), /^req_/);
  const front = JSON.parse(text) as Record<string, string>;
  t.like(front, { service: 'umpire', version: VERSION, contract: generated.info.version });
  for (const path of [front.openapi, front.models]) t.is((await get(String(path))).status, 200, path);
});

test('the document is the generated one, for the address that it was asked at', async (t) => {
  const { status, text } = await get('/openapi.json');
  t.is(status, 200);
  const { servers, ...served } = JSON.parse(text);
  const { servers: _, ...expected } = generated;
  t.deepEqual(served, expected);
  t.deepEqual(
    servers.map(({ url }: { url: string }) => url),
    ['/'],
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
  }
  for (const path of ['/v1', '/v2/decisions', '/openapi.yaml']) {
    const { status, text } = await get(path);
    t.is(status, 404);
    t.regex(JSON.parse(text).error.message, /GET \//);
  }
});
