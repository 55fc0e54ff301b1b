/** Bodies are limited by their bytes, in every protocol, and take no more memory than bytes. */
import { gzipSync } from 'node:zlib';
import { create, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { CreateDecisionRequestSchema } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { createByteCollector } from '../../../src/wire/http/byte-collector.ts';
import { isError, VALID_BODY } from '../../support/answers.ts';
import { openSession, send } from '../../support/http.ts';
import { issueKey } from '../../support/issue-key.ts';
import { openEmbedded } from '../../support/open-stores.ts';
import { DECIDE, frame, sendGrpc, validMessage } from '../../support/raw-rpc.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService, type TestService } from '../../support/service.ts';

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
    await stores.close();
  });
  const { port } = service;
  const large = JSON.stringify({ ...VALID_BODY, input: 'x'.repeat(900_000) });
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

/** A service whose bucket for an address holds 1 MiB and fills in an hour. */
async function narrow(t: ExecutionContext): Promise<TestService> {
  const service = await startService({ UMPIRE_BODIES_ANONYMOUS: '1/h, burst 1' }, { engine: createScriptedEngine() });
  t.teardown(service.stop);
  return service;
}

const GZIP = { 'content-encoding': 'gzip' };
const packed = gzipSync(JSON.stringify({ ...VALID_BODY, input: 'x'.repeat(900_000) }));
const bomb = gzipSync(Buffer.alloc(50 << 20, ' '));

test('a compressed body counts as what it becomes: Connect', async (t) => {
  const { port } = await narrow(t);
  const statuses = [];
  for (let count = 0; count < 3; count += 1)
    statuses.push((await send(port, { path: DECIDE, headers: GZIP, body: packed })).status);
  // The one that goes beyond is the last.
  t.deepEqual(statuses, [200, 200, 429]);
  t.is((await send(port, { body: JSON.stringify(VALID_BODY) })).status, 429);
});

test('a compressed body is decided over REST as over Connect, bounded and counted by what it becomes', async (t) => {
  const open = await startService({}, { engine: createScriptedEngine() });
  t.teardown(open.stop);
  const text = JSON.stringify(VALID_BODY);
  for (const coding of ['gzip', 'GZIP']) {
    t.is((await send(open.port, { body: gzipSync(text), headers: { 'content-encoding': coding } })).status, 200);
  }
  t.is((await send(open.port, { body: text, headers: { 'content-encoding': 'identity' } })).status, 200);
  isError(t, await send(open.port, { body: bomb, headers: GZIP }), {
    status: 413,
    code: 'body_too_large',
    param: null,
  });
  isError(t, await send(open.port, { body: text, headers: GZIP }), { status: 400, code: 'invalid_json', param: null });
  isError(t, await send(open.port, { body: '', headers: GZIP }), { status: 400, code: 'invalid_json', param: null });
  for (const coding of ['br', 'deflate', 'gzip, br', 'aws-chunked']) {
    const refused = await send(open.port, { body: gzipSync(text), headers: { 'content-encoding': coding } });
    isError(t, refused, { status: 415, code: 'unsupported_encoding', param: null });
    t.is(refused.headers['accept-encoding'], 'gzip');
  }

  const { port } = await narrow(t);
  const statuses = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await send(port, { headers: GZIP, body: packed })).status);
  t.deepEqual(statuses, [200, 200, 429]);
});

test('a compressed message counts as what it becomes: gRPC', async (t) => {
  const { port } = await narrow(t);
  const message = toBinary(
    CreateDecisionRequestSchema,
    create(CreateDecisionRequestSchema, {
      ...VALID_BODY,
      choices: [...VALID_BODY.choices],
      input: 'x'.repeat(900_000),
    }),
  );
  const session = openSession(port);
  const statuses = [];
  for (let count = 0; count < 3; count += 1) {
    const body = frame(gzipSync(message), { flags: 1 });
    statuses.push((await sendGrpc(session, { headers: { 'grpc-encoding': 'gzip' }, body })).trailers['grpc-status']);
  }
  session.close();
  t.deepEqual(statuses, ['0', '0', '8']);
});

test('a bomb is refused at the largest size of a body, and counted with it', async (t) => {
  const { port } = await narrow(t);
  t.true(bomb.length < 64 * 1024, `${bomb.length}`);
  const answers = [];
  for (let count = 0; count < 3; count += 1)
    answers.push(await send(port, { path: DECIDE, headers: GZIP, body: bomb }));
  // The second may be refused in the middle, if it comes in pieces.
  t.is(answers[0]?.status, 413);
  t.is(answers[2]?.status, 429);
  t.regex(answers[0]?.text ?? '', /BODY_TOO_LARGE/);
  t.is((await send(port, { body: JSON.stringify(VALID_BODY) })).status, 429);
});

test('a small body that is not the gzip it says costs no more than it could have become', async (t) => {
  const { port } = await narrow(t);
  for (let count = 0; count < 20; count += 1)
    t.is((await send(port, { path: DECIDE, headers: GZIP, body: '{}' })).status, 400);
});

test('an answer is never compressed, whatever its caller accepts', async (t) => {
  const { port } = await narrow(t);
  const answer = await send(port, {
    path: DECIDE,
    headers: { ...GZIP, 'accept-encoding': 'gzip' },
    body: gzipSync(JSON.stringify(VALID_BODY)),
  });
  t.is(answer.status, 200);
  t.is(answer.headers['content-encoding'], undefined);
  t.regex(answer.text, /^\{.*minilm-l6@/);
});
