/**
 * Connections are bounded for an address and in all; the longest idle one makes room, and other
 * addresses notice nothing.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import test from 'ava';
import { makeCertificate } from '../../support/certificates.ts';
import { untilHeld } from '../../support/held.ts';
import { openSession, parseAnswers, send, sendH2 } from '../../support/http.ts';
import { createScriptedEngine, descending } from '../../support/scripted-engine.ts';
import { scriptedService } from '../../support/service.ts';

const GET = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n';

/** A connection that has been served once and is kept; undefined if it was closed without an answer. */
async function keep(port: number, localAddress = '127.0.0.1'): Promise<Socket | undefined> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  const answer = await ask(socket);
  return answer === 200 ? socket : undefined;
}

function ask(socket: Socket): Promise<number | undefined> {
  return new Promise((resolve) => {
    socket.once('data', (chunk: Buffer) => resolve(parseAnswers(chunk)[0]?.status));
    socket.once('close', () => resolve(undefined));
    socket.write(GET);
  });
}

const closed = (socket: Socket | undefined): Promise<unknown> =>
  socket === undefined || socket.destroyed ? Promise.resolve() : once(socket, 'close');

test('at the maximum the longest idle connection goes and the newcomer is served', async (t) => {
  const service = await scriptedService(t, { UMPIRE_MAX_CONNECTIONS: '3' });
  const [first, second, third] = [await keep(service.port), await keep(service.port), await keep(service.port)];
  // The first is no longer the one that has been idle longest.
  t.is(await ask(first as Socket), 200);
  const fourth = await keep(service.port, '127.0.0.2');
  t.truthy(fourth);
  await closed(second);
  for (const socket of [first, third, fourth]) t.is(await ask(socket as Socket), 200);
  t.is(service.app.holdings().tally.evicted, 1);
  await untilHeld(service, ({ connections }) => connections === 3);
  for (const socket of [first, third, fourth]) socket?.destroy();
  await untilHeld(service, ({ connections }) => connections === 0);
});

test('where all are busy a newcomer is closed, which the log says once for many', async (t) => {
  const engine = createScriptedEngine();
  const service = await scriptedService(t, { UMPIRE_MAX_CONNECTIONS: '2' }, engine);
  const gate = Promise.withResolvers<void>();
  engine.script = async (job, terms) => {
    await gate.promise;
    return descending(job, terms);
  };
  const body = '{"model":"minilm-l6","input":"a","instruction":"b","choices":["c","d"]}';
  const busy = [1, 2].map(() => send(service.port, { body }));
  await untilHeld(service, ({ requests }) => requests === 2);
  for (let tries = 0; tries < 20; tries += 1) t.is(await keep(service.port, '127.0.0.2'), undefined);
  t.is(service.app.holdings().tally.refused.full, 20);
  gate.resolve();
  for (const { status } of await Promise.all(busy)) t.is(status, 200);
  await new Promise((resolve) => setTimeout(resolve, 1600));
  const lines = service.log.filter(({ msg }) => String(msg).startsWith('bounds were reached'));
  t.true(lines.length <= 3);
  t.is(
    lines.reduce((sum, { refusedFull }) => sum + Number(refusedFull), 0),
    20,
  );
});

for (const tls of [false, true]) {
  test(`one address has its share${tls ? ', behind TLS' : ''}: beyond it its own idle connections go`, async (t) => {
    const { certFile, keyFile } = makeCertificate('share');
    const service = await scriptedService(t, {
      UMPIRE_CONNECTIONS_PER_ADDRESS: '5',
      ...(tls ? { TLS_CERT: certFile, TLS_KEY: keyFile } : {}),
    });
    const open = async (localAddress: string): Promise<Socket> => {
      const bare = connect({ port: service.port, host: '127.0.0.1', localAddress });
      const socket = tls ? connectSecure({ socket: bare, rejectUnauthorized: false }) : bare;
      socket.on('error', () => {});
      t.is(await ask(socket), 200);
      return socket;
    };
    const neighbour = await open('127.0.0.2');
    const attacker: Socket[] = [];
    for (let count = 0; count < 40; count += 1) attacker.push(await open('127.0.0.1'));
    await untilHeld(service, ({ connections }) => connections === 6);
    t.is(service.app.holdings().tally.evicted, 35);
    t.is(await ask(neighbour), 200);
    t.is(attacker.filter((socket) => !socket.destroyed).length, 5);
    neighbour.destroy();
    for (const socket of attacker) socket.destroy();
    await untilHeld(service, ({ connections, addresses }) => connections + addresses === 0);
  });
}

test('an idle HTTP/2 session that makes room is told so with a GOAWAY', async (t) => {
  const service = await scriptedService(t, { UMPIRE_CONNECTIONS_PER_ADDRESS: '1' });
  const session = openSession(service.port);
  const goaway = once(session, 'goaway');
  t.is((await sendH2(session, { path: '/health/live' })).status, 200);
  t.truthy(await keep(service.port));
  await goaway;
  t.pass();
});

test('connections that one address opens too fast are closed; another is served', async (t) => {
  const service = await scriptedService(t, { UMPIRE_REQUEST_RATE: '20/s, burst 210' });
  const sockets = await Promise.all(Array.from({ length: 30 }, () => keep(service.port)));
  const served = sockets.filter((socket) => socket !== undefined);
  t.true(served.length >= 10 && served.length < 15, `${served.length}`);
  t.truthy(await keep(service.port, '127.0.0.2'));
  t.is(service.app.holdings().tally.refused.rate, 30 - served.length);
  for (const socket of served) socket.destroy();
});

test('connections of a trusted proxy are not counted by its address', async (t) => {
  const service = await scriptedService(t, {
    UMPIRE_CONNECTIONS_PER_ADDRESS: '2',
    UMPIRE_TRUSTED_PROXIES: '127.0.0.3',
  });
  const sockets = await Promise.all(Array.from({ length: 10 }, () => keep(service.port, '127.0.0.3')));
  t.is(sockets.filter((socket) => socket === undefined).length, 0);
  for (const socket of sockets) t.is(await ask(socket as Socket), 200);
  for (const socket of sockets) socket?.destroy();
});

test('the kernel watches for peers that have vanished', async (t) => {
  const service = await scriptedService(t);
  const socket = await keep(service.port);
  const { readFileSync } = await import('node:fs');
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');
  // State 01 is an established connection, timer 02 its keep-alive (proc_net_tcp(5)).
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((text) => text.trim().split(/\s+/))
    .find(
      ([, local, remote]) =>
        local?.endsWith(`:${hex(service.port)}`) && remote?.endsWith(`:${hex(socket?.localPort ?? 0)}`),
    );
  t.is(line?.[3], '01');
  t.regex(line?.[5] ?? '', /^02:/);
  socket?.destroy();
});
