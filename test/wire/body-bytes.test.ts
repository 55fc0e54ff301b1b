/** Bodies are limited by their bytes, in every protocol, and take no more memory than bytes. */
import test from 'ava';
import { createByteCollector } from '../../src/wire/byte-collector.ts';
import { isError, validBody } from '../support/answers.ts';
import { openEmbedded } from '../support/embedded.ts';
import { openSession, send } from '../support/http.ts';
import { issueKey } from '../support/issue-key.ts';
import { DECIDE, frame, sendGrpc, validMessage } from '../support/raw-rpc.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService } from '../support/service.ts';

test('chunks of any size become the bytes that they were', (t) => {
  for (const size of [1, 7, 4096]) {
    const whole = Buffer.from(Array.from({ length: 20_000 }, (_, index) => index % 251));
    const collected = createByteCollector();
    for (let at = 0; at < whole.length; at += size) collected.add(whole.subarray(at, at + size));
    t.deepEqual(Buffer.from(collected.bytes()), whole);
    t.is(collected.length, whole.length);
  }
  t.is(createByteCollector().bytes().length, 0);
});

test('an address that has sent its bytes is refused over REST, Connect and gRPC, and a key is not', async (t) => {
  const stores = await openEmbedded();
  const overrides = { engine: createScriptedEngine(), stores };
  const service = await startService({ UMPIRE_BODIES_ANONYMOUS: '1/h, burst 1' }, overrides);
  t.teardown(async () => {
    await service.stop();
    await stores.remove();
  });
  const { port } = service;
  const large = JSON.stringify({ ...validBody, input: 'x'.repeat(900_000) });
  t.is((await send(port, { body: large })).status, 200);
  // In the middle of the body.
  const refused = await send(port, { body: large });
  isError(t, refused, { status: 429, code: 'rate_limit_exceeded', param: null });
  t.regex(String(refused.headers['retry-after']), /^\d+$/);
  t.is((await send(port, { path: DECIDE, body: large })).status, 429);
  const session = openSession(port);
  const { trailers } = await sendGrpc(session, { body: frame(validMessage) });
  session.close();
  t.is(trailers['grpc-status'], '8');
  const { headers } = await issueKey(stores, 'owner');
  t.is((await send(port, { body: large, headers })).status, 200);
});
