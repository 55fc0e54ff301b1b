/**
 * Requests in progress, and how fast they come and are taken back, are bounded for an address; behind a trusted proxy
 * for the one that it names.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { type Answer, isError, json as parsed, VALID_BODY } from '../../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../../support/grpc.ts';
import { untilHeld } from '../../support/held.ts';
import { openSession, send, sendH2, sendRaw } from '../../support/http.ts';
import { FLAG, frame, headers, JSON_HEADERS, openRawHttp2, request, rst, TYPE } from '../../support/http2-frames.ts';
import { until } from '../../support/redis.ts';
import { createScriptedEngine, descending } from '../../support/scripted-engine.ts';
import { scriptedService } from '../../support/service.ts';

const TOO_MANY = { status: 429, code: 'rate_limit_exceeded', param: null };
/** The shape of section 12 of the contract, with the details of section 11. */
function isTooManyOverConnect(t: ExecutionContext, answer: Answer): void {
  t.is(answer.status, 429);
  t.is(answer.headers['content-type'], 'application/json');
  t.is(answer.headers['retry-after'], '1');
  t.like(parsed(answer), {
    code: 'resource_exhausted',
    details: [
      { type: 'google.rpc.ErrorInfo', debug: { reason: 'RATE_LIMIT_EXCEEDED' } },
      { type: 'google.rpc.RetryInfo' },
    ],
  });
}
const LIST_MODELS = { path: '/umpire.v1.ModelService/ListModels', body: '{}' };
const unfinished = (stream: number): Buffer => headers(stream, request('POST', '/v1/decisions', JSON_HEADERS), 0);

test('requests of any kind count for the rate of their address, those of others do not', async (t) => {
  // A trusted proxy's connections cost nothing, and stay.
  const service = await scriptedService(t, {
    UMPIRE_REQUEST_RATE: '1/h, burst 60',
    UMPIRE_TRUSTED_PROXIES: '127.0.0.1',
  });
  const answers = [];
  for (let count = 0; count < 70; count += 1) answers.push(await send(service.port, { path: '/health/live' }));
  t.deepEqual(
    answers.map(({ status }) => status),
    [...Array<number>(60).fill(200), ...Array<number>(10).fill(429)],
  );
  isError(t, answers[60] as (typeof answers)[0], TOO_MANY);
  const session = openSession(service.port);
  isError(t, await sendH2(session, { path: '/v1/models' }), TOO_MANY);
  session.destroy();
  isTooManyOverConnect(t, await send(service.port, LIST_MODELS));
  isTooManyOverConnect(t, await send(service.port, { ...LIST_MODELS, path: '/umpire.v9.ModelService/ListModels' }));
  isError(t, await send(service.port, { ...LIST_MODELS, headers: { 'content-type': 'text/plain' } }), TOO_MANY);
  t.is((await send(service.port, { path: '/health/live', localAddress: '127.0.0.2' })).status, 200);
});

test('what no other limit counts costs more than what one does, in every protocol', async (t) => {
  // Four of them, and a lot of what costs less.
  const service = await scriptedService(t, {
    UMPIRE_REQUEST_RATE: '1/h, burst 249',
    UMPIRE_TRUSTED_PROXIES: '127.0.0.1',
  });
  const grpc = openGrpc(service.port);
  t.teardown(grpc.close);
  t.is((await send(service.port, { path: '/v1/models' })).status, 200);
  t.is((await callGrpc(grpc.health, 'Check', {})).error, undefined);
  t.is((await callGrpc(grpc.models, 'ListModels', {})).error, undefined);
  t.is((await send(service.port, { path: '/v1/models/minilm-l6' })).status, 200);
  isError(t, await send(service.port, { path: '/v1/models' }), TOO_MANY);
  isTooManyOverConnect(t, await send(service.port, LIST_MODELS));
  for (const [client, method] of [
    [grpc.health, 'Check'],
    [grpc.models, 'ListModels'],
  ] as const) {
    const { error, trailers } = await callGrpc(client, method, {});
    t.is(error?.code, 8);
    t.like(errorDetails(trailers), { reason: 'RATE_LIMIT_EXCEEDED', retrySeconds: 1 });
  }
  t.is((await send(service.port, { body: JSON.stringify(VALID_BODY) })).status, 200);
  t.is((await send(service.port, { path: '/health/ready' })).status, 200);
  t.is((await send(service.port, { path: '/v1/models', localAddress: '127.0.0.2' })).status, 200);
});

test('what is in a pipeline behind a request beyond the rate is not served', async (t) => {
  // The connection, and thirty requests.
  const service = await scriptedService(t, { UMPIRE_REQUEST_RATE: '1/h, burst 50' });
  const get = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n';
  const { answers, closed } = await sendRaw(service.port, get.repeat(50), { answers: 50, timeout: 20_000 });
  t.true(closed);
  t.deepEqual(
    answers.map(({ status }) => status),
    [...Array<number>(30).fill(200), 429],
  );
});

for (const [what, first] of [
  ['as they are read', true],
  ['once they have begun', false],
] as const) {
  test(`an address that takes back too many requests, ${what}, is not served for a while`, async (t) => {
    const service = await scriptedService(t, { UMPIRE_REQUEST_RATE: '5/s, burst 250' });
    const neighbour = openSession(service.port);
    const raw = await openRawHttp2(service.port, {}, { localAddress: '127.0.0.2' });
    if (first) await raw.until(TYPE.settings);
    for (let stream = 1; stream < 400 && !raw.closed; stream += 2) {
      raw.send(unfinished(stream));
      if (!first) await sleep(1);
      raw.send(rst(stream, stream % 4 === 1 ? 8 : 0));
    }
    await raw.untilClosed();
    const { tally } = service.app.holdings();
    t.true(tally.resets > 45, `${tally.resets}`);
    t.is(tally.blocked, 1);
    await t.throwsAsync(send(service.port, { path: '/health/live', localAddress: '127.0.0.2' }));
    t.is((await sendH2(neighbour, { path: '/v1/models' })).status, 200);
    neighbour.destroy();
    await untilHeld(service, ({ requests }) => requests === 0);
  });
}

test('a session may carry a hundred cancellations a second', async (t) => {
  const service = await scriptedService(t, { UMPIRE_REQUEST_RATE: '5000/s, burst 20000' });
  const raw = await openRawHttp2(service.port);
  let stream = 1;
  for (let round = 0; round < 20; round += 1) {
    // More in all than nghttp2 lets pass by default.
    for (let count = 0; count < 100; count += 1, stream += 2) raw.send(unfinished(stream), rst(stream, 8));
    // However busy the machine is, no more of them come at once.
    await untilHeld(service, ({ tally }) => tally.resets >= 100 * (round + 1));
    await sleep(40);
  }
  raw.send(headers(stream, request('GET', '/v1/models')));
  t.truthy(await raw.until(TYPE.headers, stream));
  t.false(raw.received.some(({ type }) => type === TYPE.goaway));
  raw.destroy();
});

test('requests that are worked on fill a share, and none of them goes', async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const engine = createScriptedEngine(async (job, terms) => {
    await released;
    return descending(job, terms);
  });
  const service = await scriptedService(t, { UMPIRE_REQUESTS_PER_ADDRESS: '10' }, engine);
  const body = JSON.stringify(VALID_BODY);
  const held = Array.from({ length: 10 }, () => send(service.port, { body }));
  await untilHeld(service, ({ requests }) => requests === 10);
  isError(t, await send(service.port, { body }), { status: 429, code: 'concurrency_limit_exceeded', param: null });
  t.is((await send(service.port, { path: '/v1/models', localAddress: '127.0.0.2' })).status, 200);
  release();
  t.true((await Promise.all(held)).every(({ status }) => status === 200));
});

test('of requests that do not end the one that has been arriving longest goes', async (t) => {
  const service = await scriptedService(t, { UMPIRE_REQUESTS_PER_ADDRESS: '10' });
  const raw = await openRawHttp2(service.port);
  const began = performance.now();
  for (let count = 0; count < 10; count += 1) raw.send(unfinished(2 * count + 1));
  await untilHeld(service, ({ requests }) => requests === 10);
  await until(async () => (await send(service.port, { path: '/v1/models' })).status === 200);
  t.true(performance.now() - began >= 999);
  const { stream, payload } = await raw.until(TYPE.rst);
  t.deepEqual([stream, payload[0]], [1, 0]);
  t.is(service.app.holdings().tally.givenUp.displaced, 1);
  t.true(service.log.some(({ givenUp }) => givenUp === 'displaced'));
  raw.destroy();
  await untilHeld(service, ({ requests }) => requests === 0);
});

test('the same in all: one that arrives slowly makes room for one of another address', async (t) => {
  const service = await scriptedService(t, { UMPIRE_MAX_REQUESTS: '5' });
  const slow = Array.from({ length: 5 }, () => connect(service.port, '127.0.0.1'));
  for (const socket of slow) {
    socket.on('error', () => {});
    socket.write(
      'POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
    );
  }
  await untilHeld(service, ({ requests }) => requests === 5);
  await until(async () => (await send(service.port, { path: '/v1/models', localAddress: '127.0.0.2' })).status === 200);
  t.true(service.app.holdings().tally.givenUp.displaced > 0);
  for (const socket of slow) socket.destroy();
});

test('behind a trusted proxy callers are told apart by X-Forwarded-For', async (t) => {
  const service = await scriptedService(t, {
    UMPIRE_REQUEST_RATE: '1/h, burst 250',
    UMPIRE_TRUSTED_PROXIES: '127.0.0.3',
  });
  const ask = async (caller: string, localAddress: string): Promise<number> =>
    (await send(service.port, { path: '/v1/models', headers: { 'x-forwarded-for': caller }, localAddress })).status;
  for (let count = 0; count < 5; count += 1) t.is(await ask('192.0.2.1', '127.0.0.3'), 200);
  t.is(await ask('192.0.2.1', '127.0.0.3'), 429);
  t.is(await ask('192.0.2.2', '127.0.0.3'), 200);
  // Nobody else may say who he is, and pays for his connection.
  for (let count = 0; count < 4; count += 1) t.is(await ask(`192.0.2.${count + 10}`, '127.0.0.4'), 200);
  t.is(await ask('192.0.2.99', '127.0.0.4'), 429);
});

test('an HTTP/2 request that has been answered and does not end is ended without an error', async (t) => {
  const service = await scriptedService(t);
  const raw = await openRawHttp2(service.port);
  raw.send(headers(1, request('POST', '/a.B/C', JSON_HEADERS), 0));
  t.is((await raw.until(TYPE.data, 1)).payload.length > 10, true);
  const { payload } = await raw.until(TYPE.rst, 1);
  t.is(payload.readUInt32BE(), 0);
  await untilHeld(service, ({ requests }) => requests === 0);
  t.true(service.log.some(({ givenUp, status }) => givenUp === 'unfinished' && status === 404));
  t.is(service.app.holdings().tally.givenUp.unfinished, 1);
  raw.send(frame(TYPE.data, 1, Buffer.from('too late'), FLAG.endStream), headers(3, request('GET', '/v1/models')));
  t.truthy(await raw.until(TYPE.headers, 3));
  raw.destroy();
});
