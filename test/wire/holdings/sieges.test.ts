/**
 * Whatever a few addresses send to hold all connections, without doing anything with them, another is served, and keeps
 * as many as each of them.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { VALID_BODY } from '../../support/answers.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { hold, untilHeld } from '../../support/held.ts';
import { openTls, send } from '../../support/http.ts';
import {
  frame,
  GRPC_HEADERS,
  headers,
  JSON_HEADERS,
  PREFACE,
  request,
  settings,
  TYPE,
  watch,
} from '../../support/http2-frames.ts';
import { keyedService } from '../../support/keys.ts';

const LIST = '/umpire.v1.ModelService/ListModels';
/** A preface with windows of 0, or those of the protocol, and what comes behind it. */
const http2 = (frames: Uint8Array, window = 0): Buffer => Buffer.concat([PREFACE, settings({ 4: window }), frames]);
const text = (head: string, body = ''): Buffer => Buffer.from(`${head}\r\nHost: a\r\n${body}`);
const slow = (path: string, more = ''): Buffer =>
  text(`POST ${path} HTTP/1.1`, `Content-Type: application/json\r\n${more}Content-Length: 900\r\n\r\n{`);
const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Probes on a connection, which is kept; fails if it is closed instead. */
async function probe(t: ExecutionContext, socket: Socket): Promise<void> {
  socket.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
  const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  t.regex(String(answer), /^HTTP\/1\.1 200 /);
}

/** Connections of a neighbour, each of which was answered. */
async function keep(t: ExecutionContext, port: number, count: number): Promise<Socket[]> {
  const kept: Socket[] = [];
  for (let index = 0; index < count; index += 1) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => {});
    t.teardown(() => socket.destroy());
    await probe(t, socket);
    kept.push(socket);
  }
  return kept;
}

/** What four addresses may hold all connections with, each of them its share. */
const SIEGES: Readonly<Record<string, (key: string) => Buffer>> = {
  'nothing at all': () => Buffer.alloc(0),
  'half a head': () => text('GET /health/live HTTP/1.1').subarray(0, -2),
  'half a preface': () => PREFACE.subarray(0, 9),
  'a preface': () => http2(Buffer.alloc(0)),
  'half a head over HTTP/2': () => http2(frame(TYPE.headers, 1, Buffer.from([0x82]))),
  'a slow body over REST': () => slow('/v1/decisions'),
  'a slow body over Connect': () => slow(LIST, 'Connect-Timeout-Ms: 30000\r\n'),
  'a slow body over Connect, with a key': (key) => slow(LIST, `Authorization: Bearer ${key}\r\n`),
  'a slow body over HTTP/2': () => http2(headers(1, request('POST', '/v1/decisions', JSON_HEADERS), 0)),
  'half a message over gRPC': () => http2(headers(1, request('POST', LIST, GRPC_HEADERS), 0)),
  'an answer without a window': () => http2(headers(1, request('GET', '/health/live'))),
  'a watch, and an answer without a window': () =>
    http2(Buffer.concat([watch(1), headers(3, request('GET', '/health/live'))])),
  'a pipeline that ends in a slow body': () =>
    Buffer.concat([text('GET /none HTTP/1.1', '\r\n'), slow('/v1/decisions')]),
};

for (const [what, bytes] of Object.entries(SIEGES)) {
  test(`four addresses that send ${what} do not fill the port`, async (t) => {
    const service = await keyedService(t, { UMPIRE_MAX_CONNECTIONS: '32', UMPIRE_CONNECTIONS_PER_ADDRESS: '8' });
    hold(t, service.port, 4, 8, bytes(service.key));
    await untilHeld(service, ({ connections, tally }) => connections + tally.evicted + tally.refused.full >= 32);
    // Some are for those that have few, and then as many as each of the four has.
    const kept = await keep(t, service.port, 1);
    await later(1600);
    kept.push(...(await keep(t, service.port, 5)));
    for (const socket of kept) await probe(t, socket);
    t.is((await send(service.port, { body: JSON.stringify(VALID_BODY), localAddress: '127.0.0.3' })).status, 200);
    t.true(service.app.holdings().connections <= 32);
  });
}

test('nor do handshakes of TLS that are never finished, nor streams behind those that are', async (t) => {
  const { certFile, keyFile, cert } = makeCertificate('places');
  const service = await keyedService(t, {
    UMPIRE_MAX_CONNECTIONS: '32',
    UMPIRE_CONNECTIONS_PER_ADDRESS: '8',
    TLS_CERT: certFile,
    TLS_KEY: keyFile,
  });
  const neighbour = openTls(service.port, cert);
  t.teardown(neighbour.close);
  // The head of a record that never comes.
  hold(t, service.port, 2, 8, Buffer.from([0x16, 3, 1, 2, 0, 1]));
  const slowBody = headers(1, request('POST', '/v1/decisions', JSON_HEADERS), 0);
  hold(t, service.port, 4, 8, http2(slowBody), true);
  await untilHeld(service, ({ connections }) => connections >= 28);
  await later(1600);
  for (let count = 0; count < 6; count += 1)
    t.is((await neighbour.send({ path: '/health/live' })).status, 200, `${count}`);
});

test('behind a trusted proxy, too, no few callers fill the port; of an IPv6 /64 all are one', async (t) => {
  const service = await keyedService(t, {
    UMPIRE_MAX_CONNECTIONS: '32',
    UMPIRE_REQUESTS_PER_ADDRESS: '8',
    UMPIRE_TRUSTED_PROXIES: '127.0.0.3',
  });
  const from = (caller: string): Buffer => slow(LIST, `X-Forwarded-For: ${caller}\r\n`);
  let [told, cut] = [0, 0];
  const open = (caller: string): void => {
    const socket = connect({ port: service.port, host: '127.0.0.1', localAddress: '127.0.0.3' });
    socket.on('error', () => {}).write(from(caller));
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.toString().startsWith('HTTP/1.1 429')) return;
      told += 1;
      socket.destroy();
    });
    socket.on('close', () => {
      cut += 1;
    });
    t.teardown(() => socket.destroy());
  };
  for (let index = 1; index <= 12; index += 1) open(`2001:db8::${index}`);
  // On a machine that stands still some have been arriving for long enough to make room.
  await untilHeld(service, ({ requests }) => requests === 8 && Math.max(told, cut) >= 4);
  for (let subnet = 1; subnet < 5; subnet += 1)
    for (let index = 0; index < 8; index += 1) open(`2001:db8:0:${subnet}::${index + 1}`);
  const ask = async (caller: string): Promise<number> =>
    (
      await send(service.port, {
        path: '/v1/models',
        headers: { 'x-forwarded-for': caller },
        localAddress: '127.0.0.3',
      })
    ).status;
  await later(1600);
  for (let count = 0; count < 6; count += 1) t.is(await ask('192.0.2.1'), 200, `${count}`);
});
