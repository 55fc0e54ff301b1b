/**
 * Places are for those who are served: whatever a few addresses hold of connections and requests, and however little
 * they read, another is served. What is refused takes no place.
 */
import { once } from 'node:events';
import test from 'ava';
import { Accounts } from '../../../src/wire/holdings/accounts.ts';
import type { HoldingState } from '../../../src/wire/holdings/holdings.ts';
import { Places } from '../../../src/wire/holdings/places.ts';
import { VALID_BODY } from '../../support/answers.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { hold, untilHeld } from '../../support/held.ts';
import { openTls, send, sendRaw } from '../../support/http.ts';
import {
  FLAG,
  frame,
  headers,
  JSON_HEADERS,
  openRawHttp2,
  PREFACE,
  request,
  settings,
  TYPE,
  watch,
} from '../../support/http2-frames.ts';
import { keyedService } from '../../support/keys.ts';
import { createScriptedEngine, descending } from '../../support/scripted-engine.ts';
import { scriptedService } from '../../support/service.ts';

const LIST = '/umpire.v1.ModelService/ListModels';
const streams = (count: number, one: (stream: number) => Uint8Array): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, index) => one(2 * index + 1)));
/** A preface with windows of 0, or those of the protocol, and what comes behind it. */
const http2 = (frames: Uint8Array, window = 0): Buffer => Buffer.concat([PREFACE, settings({ 4: window }), frames]);
const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

for (const tls of [false, true]) {
  test(`one that reads no refusal takes its own places and loses its connections${tls ? ', behind TLS' : ''}`, async (t) => {
    const { certFile, keyFile, cert } = makeCertificate('refusals');
    const service = await keyedService(t, {
      UMPIRE_MAX_REQUESTS: '64',
      UMPIRE_REQUESTS_PER_ADDRESS: '20',
      ...(tls ? { TLS_CERT: certFile, TLS_KEY: keyFile } : {}),
    });
    const call = (stream: number): Buffer =>
      Buffer.concat([
        headers(stream, request('POST', LIST, JSON_HEADERS), 0),
        frame(TYPE.data, stream, Buffer.from('{}'), FLAG.endStream),
      ]);
    const sockets = hold(t, service.port, 1, 6, http2(streams(30, call)), tls);
    const neighbour = openTls(service.port, cert);
    t.teardown(neighbour.close);
    const ask = (): Promise<{ status: number }> =>
      tls
        ? neighbour.send({ path: '/health/live', localAddress: '127.0.0.2' })
        : send(service.port, { path: '/health/live', localAddress: '127.0.0.2' });
    await untilHeld(service, ({ tally }) => tally.givenUp.unread > 0);
    const { requests, refusals } = service.app.holdings();
    t.true(requests <= 20 && refusals <= 20, `${requests} and ${refusals}`);
    t.is((await ask()).status, 200);
    // More refusals than it may have requests end a connection at once, fewer that nobody reads do a moment later.
    await Promise.all(sockets.slice(1).map(async (socket) => socket.destroyed || once(socket, 'close')));
    await untilHeld(service, (state) => state.refusals === 0);
    t.true(service.app.holdings().connections <= 2);
  });
}

test('refusals of every kind that nobody reads end their connection soon, answers do later', async (t) => {
  // A connection, and one look-up.
  const service = await keyedService(t, { UMPIRE_REQUEST_RATE: '1/h, burst 75' });
  const raws = await Promise.all(
    ['/none', '/v1/models', '/health/live'].map(async (path, index) => {
      const raw = await openRawHttp2(service.port, { 4: 0 }, { localAddress: `127.0.1.${index + 1}` });
      raw.send(headers(1, request('GET', path)), headers(3, request('GET', path)));
      return raw;
    }),
  );
  await Promise.all(raws.slice(0, 2).map((raw) => raw.untilClosed()));
  t.false(raws[2]?.closed);
  raws[2]?.destroy();
});

test('an error behind a decision of the same pipeline waits for as long as that takes', async (t) => {
  const engine = createScriptedEngine();
  const service = await scriptedService(t, {}, engine);
  engine.script = async (job, terms) => {
    await later(3500);
    return descending(job, terms);
  };
  const body = JSON.stringify(VALID_BODY);
  const head = `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  const pipeline = `${head}\r\n\r\n${body}GET /none HTTP/1.1\r\nHost: a\r\n\r\n`;
  const { answers } = await sendRaw(service.port, pipeline, { answers: 2, timeout: 15_000 });
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 404],
  );
});

test('of a connection of a trusted proxy the refusals that nobody reads are ended alone', async (t) => {
  const engine = createScriptedEngine();
  const service = await scriptedService(
    t,
    { UMPIRE_REQUESTS_PER_ADDRESS: '2', UMPIRE_TRUSTED_PROXIES: '127.0.0.3' },
    engine,
  );
  const gate = Promise.withResolvers<void>();
  engine.script = async (job, terms) => {
    await gate.promise;
    return descending(job, terms);
  };
  const raw = await openRawHttp2(service.port, { 4: 0 }, { localAddress: '127.0.0.3' });
  const body = Buffer.from(JSON.stringify(VALID_BODY));
  raw.send(
    headers(1, request('POST', '/v1/decisions', [...JSON_HEADERS, ['x-forwarded-for', '192.0.2.1']]), 0),
    frame(TYPE.data, 1, body, FLAG.endStream),
  );
  for (let stream = 3; stream < 41; stream += 2)
    raw.send(headers(stream, request('GET', '/health/live', [['x-forwarded-for', '192.0.2.2']])));
  await raw.until(TYPE.rst, 39);
  await untilHeld(service, ({ refusals, requests }) => refusals === 0 && requests === 3);
  gate.resolve();
  await raw.until(TYPE.headers, 1);
  t.false(raw.closed);
  raw.destroy();
});

test('answers that nobody reads at eight addresses leave room for others', async (t) => {
  const service = await keyedService(t, { UMPIRE_MAX_REQUESTS: '64', UMPIRE_REQUESTS_PER_ADDRESS: '8' });
  const read = (stream: number): Buffer => headers(stream, request('GET', '/health/live'));
  hold(t, service.port, 8, 1, http2(streams(8, read)));
  // What is left is for those that have few.
  const done = ({ unread, displaced }: HoldingState['tally']['givenUp']): boolean => unread + displaced > 0;
  await untilHeld(service, ({ requests, refusals, tally }) => requests + refusals === 64 || done(tally.givenUp));
  t.is((await send(service.port, { path: '/health/live', localAddress: '127.0.0.2' })).status, 200);
  await later(1600);
  const raw = await openRawHttp2(service.port, {}, { localAddress: '127.0.0.2' });
  raw.send(streams(6, (stream) => headers(stream, request('POST', '/v1/decisions', JSON_HEADERS), 0)));
  await untilHeld(service, ({ tally }) => tally.givenUp.displaced > 0);
  t.is((await send(service.port, { path: '/health/live', localAddress: '127.0.0.2' })).status, 200);
  t.true(service.log.every(({ status, reason }) => status !== 503 || reason === 'OVERLOADED'));
  raw.destroy();
});

test('work in progress is not given up, and the last places are for probes and for keyed callers', async (t) => {
  const engine = createScriptedEngine();
  const service = await keyedService(t, { UMPIRE_MAX_REQUESTS: '32' }, engine);
  const ask = (localAddress: string, key?: string): Promise<number> =>
    send(service.port, {
      body: JSON.stringify(VALID_BODY),
      localAddress,
      ...(key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }),
    }).then(({ status }) => status);
  // From here a key has come.
  t.is(await ask('127.0.1.2', service.key), 200);
  const gate = Promise.withResolvers<void>();
  engine.script = async (job, terms) => {
    await gate.promise;
    return descending(job, terms);
  };
  const asked = Array.from({ length: 34 }, () => ask('127.0.1.1'));
  t.deepEqual(await Promise.race(asked), 503);
  await untilHeld(service, ({ requests }) => requests === 28);
  await later(1200);
  // All that it may have without a key and with few, then two more.
  const keyed = Array.from({ length: 6 }, () => ask('127.0.1.2', service.key));
  await untilHeld(service, () => service.log.filter(({ status }) => status === 503).length === 8);
  t.is(service.app.holdings().requests, 32);
  gate.resolve();
  const counts = (statuses: readonly number[]): number => statuses.filter((status) => status === 200).length;
  t.is(counts(await Promise.all(asked)), 28);
  t.is(counts(await Promise.all(keyed)), 4);
  t.is(await ask('127.0.1.3'), 200);
});

test('the watch that ends for another request is of the address that has most', async (t) => {
  const service = await keyedService(t, { UMPIRE_MAX_REQUESTS: '16' });
  const neighbour = await openRawHttp2(service.port, {}, { localAddress: '127.0.0.2' });
  neighbour.send(watch(1));
  await neighbour.until(TYPE.data, 1);
  const raw = await openRawHttp2(service.port);
  // The last two places are for those that have few.
  raw.send(streams(13, watch));
  await untilHeld(service, ({ watches }) => watches === 14);
  await later(1100);
  for (let stream = 27; stream < 40; stream += 2) raw.send(watch(stream));
  await untilHeld(service, ({ watches, tally }) => watches <= 14 && tally.givenUp.displaced > 0);
  t.is((await send(service.port, { path: '/health/live', localAddress: '127.0.0.3' })).status, 200);
  await later(300);
  t.false(neighbour.received.some(({ type, flags }) => type === TYPE.headers && (flags & FLAG.endStream) !== 0));
  neighbour.destroy();
  raw.destroy();
});

test('who has most gives up what has been spare longest, a part at a time, and nobody for one that has as many', (t) => {
  const accounts = new Accounts();
  const gone: string[] = [];
  const spare = new Map<string, number>();
  const places = new Places<string>({
    bound: { perAddress: 40, total: 64 },
    spareSince: (item) => spare.get(item),
    giveUp: (item) => gone.push(item),
  });
  const [large, small, newcomer] = [accounts.of('large'), accounts.of('small'), accounts.of('newcomer')];
  for (let index = 0; index < 40; index += 1) places.take(large, `large ${index}`);
  t.false(places.hasOwn(large, 0));
  for (let index = 0; index < 16; index += 1) places.take(small, `small ${index}`);
  // The eight places that are left are for those that have few, and for those that have a key.
  t.false(places.has(small, 0));
  t.true(places.has(newcomer, 0));
  small.keyedUntil = 1;
  t.true(places.has(small, 0));
  for (let index = 0; index < 8; index += 1) places.take(newcomer, `newcomer ${index}`);
  t.false(places.has(newcomer, 0));
  for (const item of ['large 7', 'small 3', 'large 9', 'large 8', 'newcomer 1'])
    spare.set(item, Number(item.slice(-1)));
  // The searches before found nothing; a moment later they do.
  t.true(places.has(newcomer, 100));
  t.deepEqual(gone.splice(0), ['large 7', 'large 8']);
  spare.clear();
  spare.set('newcomer 1', 0);
  places.take(newcomer, 'newcomer 8');
  places.take(newcomer, 'newcomer 9');
  t.false(places.has(small, 200));
  t.true(places.has(newcomer, 200));
  t.deepEqual(gone.splice(0), ['newcomer 1']);
  t.deepEqual([places.size, newcomer.places, places.give(newcomer, 'newcomer 1')], [63, 9, false]);
});
