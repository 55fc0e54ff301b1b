import { once } from 'node:events';
import { connect as connectSession } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecure } from 'node:tls';
import test from 'ava';
import { VALID_BODY } from '../../support/answers.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { callGrpc, openGrpc } from '../../support/grpc.ts';
import { decide, openSession, parseAnswers, send, sendH2 } from '../../support/http.ts';
import {
  FLAG,
  frame,
  headers,
  JSON_HEADERS,
  openRawHttp2,
  PREFACE,
  type RawHttp2,
  request,
  SETTINGS_ACK,
  TYPE,
} from '../../support/http2-frames.ts';
import { until } from '../../support/redis.ts';
import { createScriptedEngine, descending, type ScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const opened = (socket: Socket): Promise<Socket> =>
  new Promise((resolve, reject) => socket.once('connect', () => resolve(socket)).once('error', reject));
const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()));

/** Holds every job until it is let go. */
function holding(engine: ScriptedEngine): { readonly asked: Promise<void>; letGo(): void } {
  const asked = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  engine.script = async (job, terms) => {
    asked.resolve();
    await gate.promise;
    return descending(job, terms);
  };
  return { asked: asked.promise, letGo: gate.resolve };
}

for (const tls of [false, true]) {
  test(`stopping ${tls ? 'behind TLS ' : ''}closes what is idle at once and lets what is asked finish`, async (t) => {
    const engine = createScriptedEngine();
    const { certFile, keyFile } = makeCertificate('drain');
    const env: Record<string, string> = tls ? { TLS_CERT: certFile, TLS_KEY: keyFile } : {};
    const service = await startService(env, { engine });
    const { port } = service;
    const open = (protocol: string): Socket =>
      tls
        ? connectSecure({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: [protocol] })
        : connect(port, '127.0.0.1');
    const session = connectSession(service.url, { rejectUnauthorized: false });
    session.on('error', () => {});
    let goneAway = false;
    session.on('goaway', () => {
      goneAway = true;
    });
    await sendH2(session, { path: '/health/live' });
    const idle = open('http/1.1');
    const idleClosed = closed(idle);
    idle.on('error', () => {});
    await new Promise<void>((resolve) => {
      idle.once('data', () => resolve());
      idle.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
    });
    const silent = open('http/1.1');
    const silentClosed = closed(silent);
    silent.on('error', () => {});
    await new Promise<void>((resolve) => silent.once(tls ? 'secureConnect' : 'connect', () => resolve()));

    const hold = holding(engine);
    const busy = open('http/1.1');
    const received: Buffer[] = [];
    busy.on('data', (chunk: Buffer) => received.push(chunk));
    const busyClosed = closed(busy);
    const body = JSON.stringify(VALID_BODY);
    busy.write(
      `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await hold.asked;
    const stream = sendH2(session, { body });
    await until(() => engine.jobs.length >= 2);

    const startedAt = performance.now();
    const stopped = service.stop();
    await Promise.all([idleClosed, silentClosed]);
    hold.letGo();
    await busyClosed;
    const [answer] = parseAnswers(Buffer.concat(received));
    t.is(answer?.status, 200);
    t.is(answer?.headers.connection, 'close');
    t.is((await stream).status, 200);
    t.true(goneAway);
    await stopped;
    // Nothing waited for a timeout: the shortest of the listener's is 10 s.
    t.true(performance.now() - startedAt < 8000);
  });
}

test('a stop cuts what has not finished after its grace', async (t) => {
  const engine = createScriptedEngine();
  const service = await startService({ UMPIRE_DRAIN_GRACE: '0.5' }, { engine });
  const hold = holding(engine);
  const pending = decide(service.port, VALID_BODY);
  const grpc = openGrpc(service.port);
  const call = callGrpc(grpc.decisions, 'CreateDecision', VALID_BODY);
  await hold.asked;
  await until(() => engine.jobs.length >= 2);
  const stopped = service.stop();
  await t.throwsAsync(pending);
  t.is((await call).error?.code, 14);
  await stopped;
  grpc.close();
});

for (const tls of [false, true])
  test(`a stop ${tls ? 'behind TLS ' : ''}does not wait for peers whose answers have left and who neither end nor close`, async (t) => {
    const { certFile, keyFile } = makeCertificate('drain');
    const env: Record<string, string> = tls ? { TLS_CERT: certFile, TLS_KEY: keyFile } : {};
    const service = await startService(env, { engine: createScriptedEngine() });
    const opened = async (protocol: string, ...parts: readonly (string | Buffer)[]): Promise<Socket> => {
      const place = { port: service.port, host: '127.0.0.1', allowHalfOpen: true };
      const socket = tls
        ? connectSecure({ ...place, rejectUnauthorized: false, ALPNProtocols: [protocol] })
        : connect(place);
      for (const part of parts) socket.write(part);
      socket.on('error', () => {});
      await once(socket, 'data');
      return socket.resume();
    };
    const post = 'POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
    const sockets = await Promise.all([
      opened('http/1.1', `${post}Transfer-Encoding: chunked\r\n\r\n400000\r\n`, Buffer.alloc(4 << 20)),
      opened('http/1.1', `${post.replace('/v1/decisions', '/nowhere')}Content-Length: 50000\r\n\r\n{`),
      opened('h2', PREFACE, frame(TYPE.settings, 0), headers(1, request('GET', '/health/live'))),
    ]);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const startedAt = performance.now();
    await service.stop();
    // The grace is 30 s.
    t.true(performance.now() - startedAt < 12_000);
    for (const socket of sockets) socket.destroy();
  });

test('while draining, an HTTP/2 session is told to go with the one more request that it serves', async (t) => {
  const service = await startService({ UMPIRE_DRAIN_DELAY: '3' }, { engine: createScriptedEngine() });
  const session = openSession(service.port);
  await sendH2(session, { path: '/health/live' });
  const stopped = service.stop();
  t.is((await send(service.port, { path: '/health/ready' })).status, 503);
  const goaway = new Promise((resolve) => session.once('goaway', (_code, last) => resolve(last)));
  t.is((await sendH2(session, { body: JSON.stringify(VALID_BODY) })).status, 200);
  // The session's second stream: it is known to have been served, whatever else its peer has sent meanwhile.
  t.is(await goaway, 3);
  // A newcomer is served, too, and told so at once.
  const late = openSession(service.port);
  const sentAway = new Promise((resolve) => late.once('goaway', (_code, last) => resolve(last)));
  t.is((await sendH2(late, { body: JSON.stringify(VALID_BODY) })).status, 200);
  t.is(await sentAway, 1);
  await stopped;
});

/** Answers the pings that a peer has got and not answered. */
function pong(raw: RawHttp2, answered = 0): number {
  const pings = raw.received.filter(({ type }) => type === TYPE.ping);
  raw.send(...pings.slice(answered).map(({ payload }) => frame(TYPE.ping, 0, payload, FLAG.ack)));
  return pings.length;
}

const isToldToGo = ({ received, closed }: RawHttp2): boolean =>
  closed || received.some(({ type }) => type === TYPE.goaway);

test('a request that crosses the end of its HTTP/2 connection is served', async (t) => {
  const service = await startService({}, { engine: createScriptedEngine() });
  const raw = await openRawHttp2(service.port);
  raw.send(headers(1, request('GET', '/health/live')));
  await raw.until(TYPE.data, 1);
  const stopped = service.stop();
  await raw.until(TYPE.ping);
  raw.send(headers(3, request('GET', '/health/live')));
  await raw.until(TYPE.data, 3);
  await sleep(300);
  t.false(isToldToGo(raw), 'it has not read the ping');
  let answered = pong(raw);
  await until(() => raw.received.filter(({ type }) => type === TYPE.ping).length > answered);
  t.false(isToldToGo(raw), 'it may have read the ping with the answer, and begun another stream behind it');
  answered = pong(raw, answered);
  t.is((await raw.until(TYPE.goaway)).payload.readUInt32BE(), 3);
  await raw.untilClosed();
  await stopped;
});

test('while draining, no HTTP/2 connection ends before its peer has acknowledged what it has to', async (t) => {
  const engine = createScriptedEngine();
  const service = await startService({ UMPIRE_DRAIN_DELAY: '3' }, { engine });
  const stopped = service.stop();
  const slow = await openRawHttp2(service.port, {}, { acknowledging: false });
  slow.send(headers(1, request('GET', '/health/live')));
  await slow.until(TYPE.data, 1);
  await sleep(300);
  t.false(isToldToGo(slow));
  // Told in the middle of a stream, as soon as it has.
  const hold = holding(engine);
  const body = Buffer.from(JSON.stringify(VALID_BODY));
  slow.send(headers(3, request('POST', '/v1/decisions', JSON_HEADERS), 0), frame(TYPE.data, 3, body, FLAG.endStream));
  await hold.asked;
  t.false(isToldToGo(slow));
  slow.send(SETTINGS_ACK);
  pong(slow);
  t.is((await slow.until(TYPE.goaway)).payload.readUInt32BE(), 3);
  t.false(slow.received.some(({ stream }) => stream === 3));
  hold.letGo();
  await slow.until(TYPE.data, 3);
  await slow.untilClosed();
  await stopped;
});

test('what is accepted last is served: its first request may be on the way when the port closes', async (t) => {
  const service = await startService({}, { engine: createScriptedEngine() });
  const silent = await opened(connect(service.port, '127.0.0.1'));
  const received: Buffer[] = [];
  silent.on('data', (chunk: Buffer) => received.push(chunk));
  const silentClosed = closed(silent);
  const session = openSession(service.port);
  await new Promise((resolve) => session.once('remoteSettings', resolve));
  // Both are accepted, since a later connection has been answered.
  await send(service.port, { path: '/health/live' });
  const stopped = service.stop();
  silent.write('GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n');
  t.is((await sendH2(session, { body: JSON.stringify(VALID_BODY) })).status, 200);
  await silentClosed;
  const [answer] = parseAnswers(Buffer.concat(received));
  t.is(answer?.status, 200);
  t.is(answer?.headers.connection, 'close');
  await stopped;
});
