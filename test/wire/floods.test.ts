/**
 * Whatever one connection sends, it is served in turns with others, and what it may ask at once is bounded: requests in
 * a pipeline, streams and other frames of a session, messages of a stream, bytes of answers.
 */

import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { create, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { ServerReflectionRequestSchema } from '../../gen/grpc/reflection/v1/reflection_pb.ts';
import { Line, takeTurn } from '../../src/wire/http/turns.ts';
import { isError, VALID_BODY } from '../support/answers.ts';
import { makeCertificate } from '../support/certificates.ts';
import { callGrpc, openGrpc } from '../support/grpc.ts';
import { untilHeld } from '../support/held.ts';
import { get, length, parseAnswers, post, send } from '../support/http.ts';
import {
  FLAG,
  frame,
  GRPC_HEADERS,
  headers,
  JSON_HEADERS,
  openRawHttp2,
  request,
  rst,
  settings,
  TYPE,
  word,
} from '../support/http2-frames.ts';
import { issueKey, keyedService } from '../support/keys.ts';
import { until } from '../support/redis.ts';
import { createScriptedEngine, descending } from '../support/scripted-engine.ts';
import { scriptedService } from '../support/service.ts';

const LIVE = { path: '/health/live', localAddress: '127.0.0.2' };
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const TOO_MANY = { status: 429, code: 'rate_limit_exceeded', param: null };
/** GOAWAY's codes where a session is ended: ENHANCE_YOUR_CALM, or Node's own INTERNAL_ERROR where it finds it first. */
const ENDED = [11, 2];

test('what an address asks beyond its share of a turn waits, and others have theirs', async (t) => {
  const [greedy, other] = [new Line(), new Line()];
  const done: string[] = [];
  for (let index = 0; index < 50; index += 1)
    takeTurn(greedy, () => {
      done.push('greedy');
      return { requests: 1, more: false };
    });
  const atOnce = done.length;
  t.true(atOnce > 0 && atOnce <= 11, `${atOnce}`);
  takeTurn(other, () => {
    done.push('other');
    return { requests: 1, more: false };
  });
  t.is(done.at(-1), 'other', 'who has used nothing does not wait');
  let turns = 0;
  for (; done.length < 51; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  t.true(turns >= 4, `${turns}`);
});

const certificate = makeCertificate('127.0.0.1');
for (const [how, tls] of [
  ['HTTP/1.1', {}],
  ['TLS', { TLS_CERT: certificate.certFile, TLS_KEY: certificate.keyFile }],
] as const) {
  test(`${how}: of a pipeline few requests are open at a time, and all are answered in order`, async (t) => {
    let open: (() => void)[] = [];
    const engine = createScriptedEngine(
      (job) => new Promise((resolve) => open.push(() => resolve(descending(job, undefined as never)))),
    );
    const service = await scriptedService(t, tls, engine);
    const to = { port: service.port, host: '127.0.0.1' };
    const socket = how === 'TLS' ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
    t.teardown(() => socket.destroy());
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => {});
    const count = 200;
    socket.write(post(length).repeat(count));
    await untilHeld(service, ({ requests }) => requests >= 16);
    let most = 0;
    const answers = () => parseAnswers(Buffer.concat(chunks)).filter(({ status }) => status === 200).length;
    while (answers() < count) {
      most = Math.max(most, service.app.holdings().requests);
      const waiting = open;
      open = [];
      for (const answer of waiting) answer();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    t.true(most < 40, `${most}`);
  });
}

test('a neighbour is answered in the middle of a pipeline of thousands', async (t) => {
  const service = await scriptedService(t);
  const count = 20_000;
  const socket = connect({ port: service.port, host: '127.0.0.1' });
  t.teardown(() => socket.destroy());
  let answered = 0;
  socket
    .on('error', () => {})
    .on('data', (chunk: Buffer) => {
      answered += chunk.toString('latin1').split('HTTP/1.1 200').length - 1;
    });
  socket.write(get('/health/live').repeat(count));
  while (answered === 0) await new Promise((resolve) => setImmediate(resolve));
  t.is((await send(service.port, LIVE)).status, 200);
  t.true(answered < count, 'the pipeline is not over');
  await until(() => answered >= count, 60_000);
  t.is(answered, count);
});

for (const [what, one] of [
  [
    'streams that are taken back',
    (stream: number) => Buffer.concat([headers(stream, request('GET', '/v1/models')), rst(stream, 8)]),
  ],
  [
    'calls that expect 100 and are taken back',
    (stream: number) =>
      Buffer.concat([
        headers(stream, request('POST', '/v1/decisions', [['expect', '100-continue']]), 0),
        rst(stream, 8),
      ]),
  ],
  ['PING', () => frame(TYPE.ping, 0, Buffer.alloc(8))],
  ['SETTINGS', () => settings({ 3: 100 })],
] as const) {
  test(`HTTP/2: a session is ended that sends thousands at once: ${what}`, async (t) => {
    const service = await scriptedService(t);
    const raw = await openRawHttp2(service.port);
    await raw.until(TYPE.settings);
    raw.send(Buffer.concat(Array.from({ length: 6000 }, (_, index) => one(2 * index + 1))));
    const { payload } = await raw.until(TYPE.goaway);
    t.true(ENDED.includes(payload.readUInt32BE(4)), payload.toString('hex'));
    await raw.untilClosed();
    t.is((await send(service.port, LIVE)).status, 200);
    await untilHeld(service, ({ requests }) => requests === 0);
  });
}

test('HTTP/2: of streams that are taken back at once all are counted and few are begun', async (t) => {
  const service = await scriptedService(t);
  const raw = await openRawHttp2(service.port);
  await raw.until(TYPE.settings);
  const call = request('POST', '/v1/decisions', JSON_HEADERS);
  raw.send(
    Buffer.concat(
      Array.from({ length: 90 }, (_, index) => {
        const stream = 2 * index + 1;
        return Buffer.concat([headers(stream, call, FLAG.endHeaders), rst(stream, 8)]);
      }),
    ),
  );
  await untilHeld(service, ({ tally, requests }) => tally.resets === 90 && requests === 0);
  const begun = service.log.filter(({ msg }) => msg === 'request').length;
  t.true(begun <= 30, `${begun}`);
  raw.destroy();
});

test('behind a trusted proxy callers take turns, though they share connections', async (t) => {
  const service = await scriptedService(t, { UMPIRE_TRUSTED_PROXIES: '127.0.0.1' });
  const raw = await openRawHttp2(service.port);
  await raw.until(TYPE.settings);
  const of = (stream: number, caller: string): Buffer =>
    headers(stream, request('GET', '/v1/models', [['x-forwarded-for', caller]]));
  const flood = Array.from({ length: 90 }, (_, index) => of(2 * index + 1, '192.0.2.1'));
  raw.send(Buffer.concat([...flood, of(181, '192.0.2.2')]));
  await raw.until(TYPE.headers, 179);
  await raw.until(TYPE.headers, 181);
  const order = raw.received.filter(({ type }) => type === TYPE.headers).map(({ stream }) => stream);
  t.true(order.indexOf(181) < order.indexOf(179), `${order}`);
  raw.destroy();
});

test('a call that has ended before its turn is answered', async (t) => {
  const service = await scriptedService(t);
  const raw = await openRawHttp2(service.port);
  await raw.until(TYPE.settings);
  const call = request('POST', '/umpire.v1.DecisionService/CreateDecision', GRPC_HEADERS);
  const calls = Array.from({ length: 90 }, (_, index) =>
    Buffer.concat([
      headers(2 * index + 1, call, FLAG.endHeaders),
      frame(TYPE.data, 2 * index + 1, Buffer.alloc(0), FLAG.endStream),
    ]),
  );
  raw.send(Buffer.concat(calls));
  const ended = () =>
    raw.received.filter(({ type, flags }) => type === TYPE.headers && (flags & FLAG.endStream) !== 0).length;
  await until(() => ended() >= 90 || raw.closed, 60_000);
  t.is(ended(), 90);
  t.false(service.log.some(({ reason }) => reason === 'DEADLINE_EXCEEDED'));
  raw.destroy();
});

test('each message of a reflection stream counts as a look-up', async (t) => {
  // A connection, a call and twenty look-ups.
  const service = await scriptedService(t, { UMPIRE_REFLECTION: 'on', UMPIRE_REQUEST_RATE: '1/h, burst 1020' });
  const raw = await openRawHttp2(service.port, { 4: 0x7fffffff });
  const message = toBinary(
    ServerReflectionRequestSchema,
    create(ServerReflectionRequestSchema, { messageRequest: { case: 'fileByFilename', value: 'none' } }),
  );
  const asked = Buffer.concat([Buffer.from([0]), word(message.length), message]);
  raw.send(
    headers(
      1,
      request('POST', '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', GRPC_HEADERS),
      FLAG.endHeaders,
    ),
    frame(TYPE.data, 1, Buffer.concat(Array.from({ length: 400 }, () => asked))),
  );
  const ended = () => raw.received.some(({ type, flags }) => type === TYPE.headers && (flags & FLAG.endStream) !== 0);
  await until(ended, 60_000);
  const answers = raw.received.filter(({ type, payload }) => type === TYPE.data && payload.length > 0);
  const bytes = Buffer.concat(answers.map(({ payload }) => payload));
  let count = 0;
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) count += 1;
  t.is(count, 20);
  const noted = ({ reason, route }: Record<string, unknown>): boolean =>
    reason === 'RATE_LIMIT_EXCEEDED' && `${route}`.includes('Reflection');
  await until(() => service.log.some(noted), 60_000);
  raw.destroy();
});

test('bytes of answers are counted for their key, in every protocol', async (t) => {
  const env = { UMPIRE_BODIES_KEY: '0.001/s, burst 2' };
  const service = await keyedService(t, env);
  const grpc = openGrpc(service.port);
  t.teardown(grpc.close);
  const choices = Array.from({ length: 250 }, (_, index) => `${'q'.repeat(3000)}${index}`);
  const calls = {
    rest: async (key: string) =>
      (await send(service.port, { path: '/v1/catalogs/large', headers: bearer(key) })).status,
    connect: async (key: string) => {
      const call = { path: '/umpire.v1.CatalogService/GetCatalog', body: '{"id":"large"}', headers: bearer(key) };
      return (await send(service.port, call)).status;
    },
    grpc: async (key: string) => {
      const { error } = await callGrpc(grpc.catalogs, 'GetCatalog', { id: 'large' }, { metadata: bearer(key) });
      return error === undefined ? 200 : error.code === 8 ? 429 : error.code;
    },
  };
  for (const [protocol, read] of Object.entries(calls)) {
    const { key } = await issueKey(service.stores, protocol);
    const body = JSON.stringify({ id: 'large', model: 'minilm-l6', choices });
    t.is((await send(service.port, { path: '/v1/catalogs', headers: bearer(key), body })).status, 201);
    // The last answer may exceed the bound.
    const statuses = [];
    for (let count = 0; count < 4; count += 1) statuses.push(await read(key));
    t.deepEqual(statuses, [200, 200, 429, 429], protocol);
  }
  t.is((await send(service.port, { body: JSON.stringify(VALID_BODY) })).status, 200);
});

test('what is refused before any limit of callers counts as a look-up', async (t) => {
  const service = await scriptedService(t, {
    UMPIRE_REQUEST_RATE: '1/h, burst 299',
    UMPIRE_TRUSTED_PROXIES: '127.0.0.1',
  });
  for (const [index, call] of [
    { path: '/' },
    { path: '/none' },
    { path: '/v1/models', method: 'OPTIONS' },
    { path: '/umpire.v1.None/Call', body: '{}' },
    { path: '/v1/catalogs', body: '{}' },
  ].entries()) {
    // Each for an address of its own, which has looked up nothing before.
    const own = { ...call, headers: { 'x-forwarded-for': `192.0.2.${index + 1}` } };
    const statuses = new Set<number>();
    for (let count = 0; count < 5; count += 1) statuses.add((await send(service.port, own)).status);
    t.false(statuses.has(429), JSON.stringify(call));
    const answer = await send(service.port, own);
    if (call.path.includes('.')) t.is(answer.status, 429);
    else isError(t, answer, TOO_MANY);
  }
  t.is((await send(service.port, LIVE)).status, 200);
});
