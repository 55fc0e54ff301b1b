/**
 * Responses that nobody reads: the lease goes back when the work is done, the bytes are counted for the address and
 * in all, and after the stated time without progress the response is given up, with its connection where nothing
 * leaves that at all.
 */
import { connect as openSecureSession } from 'node:http2';
import { connect } from 'node:net';
import test from 'ava';
import { isError, VALID_BODY } from '../../support/answers.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { untilHeld } from '../../support/held.ts';
import { parseAnswers, send } from '../../support/http.ts';
import { frame, headers, openRawHttp2, request, TYPE, windowUpdate } from '../../support/http2-frames.ts';
import { keyedService } from '../../support/keys.ts';
import { goByOwnTime } from '../../support/own-time.ts';
import { metricsPortOf, scrape } from '../../support/scrape.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { scriptedService } from '../../support/service.ts';

// Who is kept waiting by the machine reads no slower for it.
goByOwnTime();

/** A decision whose answer is as large as the request. */
const large = JSON.stringify({
  ...VALID_BODY,
  choices: Array.from({ length: 300 }, (_, index) => `${index}${'x'.repeat(3300)}`),
});
const post = (body: string): string =>
  `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const small = JSON.stringify(VALID_BODY);

test('HTTP/1.1: answers in a pipeline that is not read', async (t) => {
  const service = await scriptedService(t, { UMPIRE_CONCURRENCY_ANONYMOUS: '10', UMPIRE_WRITE_TIMEOUT: '2' });
  const socket = connect(service.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.pause();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  // More than the kernel keeps for both ends.
  for (let count = 0; count < 30; count += 1) socket.write(post(large));
  await untilHeld(service, ({ unread }) => unread > 100_000);
  // There are fewer places for this address, which the unread ones give back as soon as their work is done.
  let status = 429;
  while (status === 429) ({ status } = await send(service.port, { body: small }));
  t.is(status, 200);
  await untilHeld(service, ({ requests, connections, unread }) => requests + connections + unread === 0);
  t.true(service.app.holdings().tally.givenUp.unread > 0);
  t.true(service.log.some(({ givenUp, status }) => givenUp === 'unread' && status === 200));
  socket.resume();
  socket.end();
  await closed;
});

test('behind TLS, too, a connection on which nothing is read is closed', async (t) => {
  const { certFile, keyFile } = makeCertificate('unread');
  const service = await scriptedService(t, { UMPIRE_WRITE_TIMEOUT: '1', TLS_CERT: certFile, TLS_KEY: keyFile });
  const session = openSecureSession(service.url, { rejectUnauthorized: false, settings: { initialWindowSize: 0 } });
  session.on('error', () => {});
  const stream = session.request({ ':path': '/v1/models' });
  stream.on('error', () => {});
  await new Promise((resolve) => session.once('close', resolve));
  await untilHeld(service, ({ requests, connections }) => requests + connections === 0);
  t.true(service.log.some(({ givenUp, route }) => givenUp === 'unread' && route === '/v1/models'));
});

test('HTTP/1.1: an answer that is read slowly, but read, arrives whole', async (t) => {
  const service = await scriptedService(t, { UMPIRE_WRITE_TIMEOUT: '2' });
  const socket = connect({ port: service.port, host: '127.0.0.1' });
  socket.on('error', () => {});
  socket.pause();
  const count = 24;
  for (let sent = 0; sent < count; sent += 1) socket.write(post(large));
  const chunks: Buffer[] = [];
  const started = performance.now();
  const answers = (): number => parseAnswers(Buffer.concat(chunks)).filter(({ status }) => status === 200).length;
  // A busy machine is silent for longer before the last of them.
  for (let silent = 0; silent < 100 || (silent < 1000 && answers() < count); silent += 1) {
    const chunk = socket.read() as Buffer | null;
    if (chunk !== null) {
      chunks.push(chunk);
      silent = 0;
    }
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  t.true(performance.now() - started > 3000);
  t.is(answers(), count);
  t.is(service.app.holdings().tally.givenUp.unread, 0);
  socket.destroy();
});

test('HTTP/2: streams without a window', async (t) => {
  const engine = createScriptedEngine();
  const service = await keyedService(
    t,
    { UMPIRE_WRITE_TIMEOUT: '2', UMPIRE_UNREAD_PER_ADDRESS: '4', UMPIRE_METRICS_PORT: '0' },
    engine,
  );
  const authorization = `Bearer ${service.key}`;
  const created = await send(service.port, {
    path: '/v1/catalogs',
    headers: { authorization },
    body: JSON.stringify({ id: 'large', model: 'minilm-l6', choices: JSON.parse(large).choices }),
  });
  t.is(created.status, 201, created.text);
  const raw = await openRawHttp2(service.port, { 4: 0 });
  for (let stream = 1; stream < 100; stream += 2)
    raw.send(headers(stream, request('GET', '/v1/catalogs/large', [['authorization', authorization]])));
  const state = await untilHeld(service, ({ unread }) => unread > 0);
  // The bound and at most one answer more; the others were told.
  t.true(state.unread < 6 * 1024 * 1024, `${state.unread}`);
  isError(t, await send(service.port, { path: '/v1/catalogs/large', headers: { authorization } }), {
    status: 429,
    code: 'concurrency_limit_exceeded',
    param: null,
  });
  const other = { path: '/v1/catalogs/large', headers: { authorization }, localAddress: '127.0.0.2' };
  t.is((await send(service.port, other)).status, 200);
  await raw.untilClosed();
  await untilHeld(service, ({ requests, unread }) => requests + unread === 0);
  t.is((await send(service.port, { path: '/v1/catalogs/large', headers: { authorization } })).status, 200);
  // Those beyond the bound were told so.
  t.true(service.log.some(({ reason }) => reason === 'CONCURRENCY_LIMIT_EXCEEDED'));
  const metrics = await scrape(metricsPortOf(service));
  t.true((metrics.get('umpire_given_up_total{reason="unread"}') ?? 0) > 0);
  t.is(metrics.get('umpire_unread_bytes'), 0);
});

test('HTTP/2: a stream whose window opens in time is served, and one that trickles ends', async (t) => {
  const service = await scriptedService(t, { UMPIRE_WRITE_TIMEOUT: '1' });
  const raw = await openRawHttp2(service.port, { 4: 0 });
  raw.send(headers(1, request('GET', '/v1/models')), headers(3, request('GET', '/v1/models')));
  await raw.until(TYPE.headers, 3);
  await new Promise((resolve) => setTimeout(resolve, 500));
  raw.send(windowUpdate(1, 100_000));
  t.truthy(await raw.until(TYPE.data, 1));
  const drip = setInterval(() => raw.send(windowUpdate(3, 1)), 200);
  await untilHeld(service, ({ requests }) => requests === 0, 20_000);
  clearInterval(drip);
  t.true(service.log.some(({ givenUp }) => givenUp === 'unread'));
  raw.destroy();
});

test('past the bound of all the responses that have waited longest are given up', async (t) => {
  const service = await scriptedService(t, {
    UMPIRE_MAX_UNREAD: '6',
    UMPIRE_UNREAD_PER_ADDRESS: '4',
    UMPIRE_WRITE_TIMEOUT: '60',
  });
  const raws = await Promise.all(
    [2, 3, 4, 5].map(async (host) => {
      const raw = await openRawHttp2(service.port, { 4: 0 }, { localAddress: `127.0.0.${host}` });
      // What it sends beyond the windows would end it, and they grow from here on.
      await raw.until(TYPE.settings);
      const sent = [['content-type', 'application/json']] as const;
      for (const stream of [1, 3, 5]) {
        raw.send(headers(stream, request('POST', '/v1/decisions', sent), 0));
        raw.send(windowUpdate(0, 1));
        // The server's windows are 64 KiB and grow as it reads.
        for (let at = 0; at < large.length; at += 16_000) {
          raw.send(
            frame(TYPE.data, stream, Buffer.from(large.slice(at, at + 16_000)), at + 16_000 >= large.length ? 1 : 0),
          );
          if (at % 48_000 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
        }
      }
      return raw;
    }),
  );
  await untilHeld(service, ({ tally }) => tally.givenUp.unread > 0);
  await untilHeld(service, ({ unread }) => unread <= 6 * 1024 * 1024);
  t.is((await send(service.port, { body: small })).status, 200);
  for (const raw of raws) raw.destroy();
});
