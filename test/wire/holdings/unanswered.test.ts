/**
 * A request that is never answered, whatever it waits for, is given up in the end with its connection; a watch is not.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { Server, Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { NO_PROXIES } from '../../../src/domain/client-address.ts';
import { readSettings } from '../../../src/domain/settings.ts';
import { createLogger } from '../../../src/logger.ts';
import { Holdings } from '../../../src/wire/holdings/holdings.ts';
import { HOLDING_SETTINGS, holdingsOf as settingsOf } from '../../../src/wire/holdings/settings.ts';
import { Exchange } from '../../../src/wire/http/exchange.ts';
import type { HttpRequest, HttpResponse } from '../../../src/wire/http/messages.ts';
import { openSession, sendRaw } from '../../support/http.ts';
import { listen } from '../../support/listening.ts';

const MOST_TIME = 1000;

/** Counts what a server gets, and answers nothing but `/answered`. */
async function countOn(t: ExecutionContext, server: Server, holdings: Holdings): Promise<number> {
  // Before the server's own listener, which makes a session of it.
  server.prependListener('connection', (socket: Socket) => holdings.accept(socket));
  server.on('session', (session) => holdings.bindSession(session));
  server.on('request', (request: HttpRequest, response: HttpResponse) => {
    const exchange = new Exchange(request, response);
    const connection = holdings.find(request);
    const end = (): void => holdings.close(exchange);
    if (request.url !== '/unheard') response.on('close', end);
    if (connection === undefined || holdings.open(exchange, connection, end) !== undefined) t.fail();
    if (request.url === '/watch') t.teardown(holdings.watch(exchange, () => {}));
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

async function untilNone(holdings: Holdings): Promise<void> {
  const deadline = performance.now() + 5000;
  while (holdings.state().requests + holdings.state().connections > 0 && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 10));
  const { requests, connections } = holdings.state();
  if (requests + connections > 0) throw new Error(`${requests} requests, ${connections} connections are held`);
}

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
