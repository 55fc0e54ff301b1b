/**
 * `Health.Watch` is bounded in time, and as requests are for an address and in all; the oldest watch makes room, and
 * its stream ends in order. A request that is never answered, whatever it waits for, is given up in the end with its
 * connection.
 */

import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import type { Server, Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { NO_PROXIES } from '../../../src/domain/client-address.ts';
import { readSettings } from '../../../src/domain/settings.ts';
import { createLogger } from '../../../src/logger.ts';
import { Holdings } from '../../../src/wire/holdings/holdings.ts';
import { HOLDING_SETTINGS, holdingsOf as settingsOf } from '../../../src/wire/holdings/settings.ts';
import { Exchange } from '../../../src/wire/http/exchange.ts';
import type { HttpRequest, HttpResponse } from '../../../src/wire/http/messages.ts';
import { untilHeld } from '../../support/held.ts';
import { openSession, sendRaw } from '../../support/http.ts';
import { FLAG, openRawHttp2, type RawHttp2, TYPE, watch } from '../../support/http2-frames.ts';
import { listen } from '../../support/listening.ts';
import { until } from '../../support/redis.ts';
import { scriptedService } from '../../support/service.ts';

const EMPTY = Buffer.alloc(5);

/** Whether a stream has ended with trailers, which say that all is well. */
const ended = ({ received }: RawHttp2, stream: number): boolean =>
  received.some((each) => each.stream === stream && each.type === TYPE.headers && (each.flags & FLAG.endStream) !== 0);

test('for one address: the oldest ends, those of others stay', async (t) => {
  const service = await scriptedService(t, { UMPIRE_REQUESTS_PER_ADDRESS: '3' });
  const neighbour = await openRawHttp2(service.port, {}, { localAddress: '127.0.0.2' });
  neighbour.send(watch(1));
  await neighbour.until(TYPE.data, 1);
  const raw = await openRawHttp2(service.port);
  for (const stream of [1, 3, 5]) raw.send(watch(stream));
  await raw.until(TYPE.data, 5);
  // Each has a second before a newer one may take its place.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  raw.send(watch(7));
  await raw.until(TYPE.data, 7);
  await untilHeld(service, ({ watches, requests }) => watches === 4 && requests === 4);
  await until(() => ended(raw, 1));
  t.deepEqual(
    [1, 3, 5, 7].map((stream) => ended(raw, stream)),
    [true, false, false, false],
  );
  t.false(ended(neighbour, 1));
  t.is(service.app.holdings().tally.givenUp.displaced, 1);
  raw.destroy();
  neighbour.destroy();
  await untilHeld(service, ({ watches, requests }) => watches + requests === 0);
});

test('in all', async (t) => {
  const service = await scriptedService(t, { UMPIRE_MAX_REQUESTS: '2' });
  const raws = await Promise.all(
    [2, 3, 4].map((host) => openRawHttp2(service.port, {}, { localAddress: `127.0.0.${host}` })),
  );
  for (const raw of raws) {
    raw.send(watch(1));
    await raw.until(TYPE.data, 1);
    await new Promise((resolve) => setTimeout(resolve, 1100));
  }
  await untilHeld(service, ({ watches }) => watches === 2);
  await until(() => ended(raws[0] as RawHttp2, 1));
  t.deepEqual(
    raws.map((raw) => ended(raw, 1)),
    [true, false, false],
  );
  for (const raw of raws) raw.destroy();
});

test('in time', async (t) => {
  const service = await scriptedService(t, { UMPIRE_WATCH_TIME: '1' });
  const raw = await openRawHttp2(service.port);
  raw.send(watch(1));
  await raw.until(TYPE.data, 1);
  await untilHeld(service, ({ watches }) => watches === 0);
  await untilHeld(service, ({ requests }) => requests === 0);
  await until(() => ended(raw, 1));
  t.true(ended(raw, 1));
  t.false(raw.closed);
  raw.destroy();
});

test('watches of a caller that goes without a word are over', async (t) => {
  const service = await scriptedService(t);
  const session = connect(service.url);
  session.on('error', () => {});
  for (let count = 0; count < 10; count += 1) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Watch',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => {});
    stream.end(EMPTY);
  }
  await untilHeld(service, ({ watches }) => watches === 10);
  session.destroy();
  await untilHeld(service, ({ watches, requests, connections }) => watches + requests + connections === 0);
  t.pass();
});

const MOST_TIME = 1000;

/** Counts what a server gets, and answers nothing but `/answered`. */
async function countOn(t: ExecutionContext, server: Server, holdings: Holdings): Promise<number> {
  // Before the server's own listener, which makes a session of it.
  server.prependListener('connection', (socket: Socket) => holdings.connections.accept(socket));
  server.on('session', (session) => holdings.connections.bindSession(session));
  server.on('request', (request: HttpRequest, response: HttpResponse) => {
    const exchange = new Exchange(request, response);
    const connection = holdings.connections.of(request);
    const end = (): void => holdings.close(exchange);
    if (request.url !== '/unheard') response.on('close', end);
    if (connection === undefined || holdings.open(exchange, connection, end) !== undefined) t.fail();
    if (request.url === '/watch') holdings.watch(exchange, () => {});
    if (request.url === '/answered') response.end('{}');
  });
  t.teardown(() => server.close());
  return listen(server);
}

function holdingsOf(t: ExecutionContext): Holdings {
  const holdings = new Holdings({
    settings: settingsOf(readSettings(HOLDING_SETTINGS, {}).value),
    trustedProxies: NO_PROXIES,
    logger: createLogger('error', { write: () => {} }),
    mostTime: MOST_TIME,
  });
  t.teardown(() => holdings.stop());
  return holdings;
}

const untilNone = (holdings: Holdings) => until(() => holdings.state().requests + holdings.state().connections === 0);

test('over HTTP/1.1', async (t) => {
  const holdings = holdingsOf(t);
  const port = await countOn(t, createServer(), holdings);
  const { answers, closed } = await sendRaw(
    port,
    'GET /answered HTTP/1.1\r\nHost: a\r\n\r\nGET /never HTTP/1.1\r\nHost: a\r\n\r\n',
    { answers: 2, timeout: 10_000 },
  );
  t.is(answers.length, 1);
  t.true(closed);
  await untilNone(holdings);
  t.is(holdings.state().tally.givenUp.unfinished, 1);
});

test('over HTTP/2; a watch stays', async (t) => {
  const holdings = holdingsOf(t);
  const port = await countOn(t, createHttp2Server(), holdings);
  const watching = openSession(port);
  watching.request({ ':path': '/watch' }).on('error', () => {});
  const session = openSession(port);
  session.request({ ':path': '/never' }).on('error', () => {});
  session.on('error', () => {});
  await once(session, 'close');
  t.is(holdings.state().tally.givenUp.unfinished, 1);
  await new Promise((resolve) => setTimeout(resolve, 2 * MOST_TIME));
  const { tally, requests, connections } = holdings.state();
  t.deepEqual([tally.givenUp.unfinished, requests, connections], [1, 1, 1]);
  watching.destroy();
});

test('one whose connection is gone is given back, though nothing said that its response is over', async (t) => {
  const holdings = holdingsOf(t);
  const port = await countOn(t, createServer(), holdings);
  await sendRaw(port, 'GET /unheard HTTP/1.1\r\nHost: a\r\n\r\n', { answers: 1, timeout: 200 });
  await untilNone(holdings);
  // Nothing waited for the time after which a request is given up.
  t.is(holdings.state().tally.givenUp.unfinished, 0);
});
