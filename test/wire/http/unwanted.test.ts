/**
 * What is left of a refused request is read slowly where it is large, whoever sends it. The answer says that the
 * connection closes, arrives whatever the caller has still to send, and is the last one.
 */

import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import test from 'ava';
import { throwRestAway } from '../../../src/wire/http/body.ts';
import { parseAnswers } from '../../support/http.ts';
import { scriptedService } from '../../support/service.ts';

const MIB = 1024 * 1024;
/** Bytes of a rest that are read at once, and bytes a second of all others together: see `body.ts`. */
const AT_ONCE = 64 * 1024;
const PACE = (4 * 64 * 1024 * 1000) / 10;

/** Answers every request before its body has arrived. */
async function startRefusing(): Promise<{ readonly server: Server; readonly sockets: Set<Socket> }> {
  const server = createServer((incoming, response) => {
    throwRestAway(incoming);
    response.writeHead(429).end();
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, sockets };
}

/** Resolves with the status as soon as the answer is there, and with when the request has left. */
function send(
  port: number,
  agent: Agent,
  body: Buffer,
): Promise<readonly [status: number | undefined, sent: Promise<unknown>]> {
  const sent = request({ port, host: '127.0.0.1', method: 'POST', agent, headers: { 'content-length': body.length } });
  const closed = once(sent, 'close');
  sent.end(body);
  return once(sent, 'response').then(([answer]: IncomingMessage[]) => [answer?.resume().statusCode, closed]);
}

test('rests of many connections are read at one pace, and all to their end', async (t) => {
  const { server, sockets } = await startRefusing();
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true });
  const began = performance.now();
  const answers = await Promise.all(Array.from({ length: 8 }, () => send(port, agent, Buffer.alloc(2 * MIB))));
  t.deepEqual(
    answers.map(([status]) => status),
    Array(8).fill(429),
  );
  const read = (): number => [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  while (read() < 16 * MIB) {
    // Headers, and of each connection the piece that Node holds before anybody asks for it.
    const most = 8 * (AT_ONCE + 2 * 64 * 1024 + 1024) + (PACE * (performance.now() - began + 10)) / 1000;
    t.true(read() < most, `${read()} bytes, at most ${most.toFixed(0)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await Promise.all(answers.map(([, sent]) => sent));
  const [status] = await send(port, agent, Buffer.from('once more'));
  t.is(status, 429);
  t.is(sockets.size, 8);
  agent.destroy();
});

test('a small rest waits for no large one', async (t) => {
  const { server } = await startRefusing();
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const large = new Agent({ keepAlive: true });
  const waiting = Array.from({ length: 16 }, () => send(port, large, Buffer.alloc(8 * MIB)));
  await Promise.all(waiting);
  let ended = false;
  void Promise.race(waiting.map(async (each) => (await each)[1])).then(() => {
    ended = true;
  });
  const small = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let each = 0; each < 20; each += 1) {
    const [, sent] = await send(port, small, Buffer.alloc(60_000));
    await sent;
  }
  t.false(ended);
  small.destroy();
  large.destroy();
});

test('the service reads what it has refused at that pace, and answers others meanwhile', async (t) => {
  const service = await scriptedService(t);
  const agent = new Agent({ keepAlive: true });
  const began = performance.now();
  const [status, sent] = await send(service.port, agent, Buffer.alloc(24 * MIB));
  t.is(status, 405);
  t.is((await fetch(`${service.url}/health/live`)).status, 200);
  await sent;
  agent.destroy();
  // The kernel holds a few MiB of it.
  t.true(performance.now() - began > (1000 * 14 * MIB) / PACE);
});

test('a rest in chunks is read at that pace, too', async (t) => {
  const service = await scriptedService(t);
  const began = performance.now();
  const sent = request({ port: service.port, host: '127.0.0.1', path: '/nowhere', method: 'POST' });
  for (let each = 0; each < 10; each += 1) sent.write(Buffer.alloc(MIB));
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  t.is(answer.statusCode, 404);
  await once(answer.resume(), 'close');
  await once(sent, 'close');
  // In the small pieces in which requests are read it took half a minute.
  t.true(performance.now() - began < 15_000);
});

test('an answer before a large rest is the last of its connection, and is not lost', async (t) => {
  const service = await scriptedService(t);
  const socket = connect(service.port, '127.0.0.1').pause();
  const body = Buffer.alloc(8 * MIB, 'x');
  const next = 'POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
  socket.write(`POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`);
  // Nothing is read until all of it has been taken.
  await new Promise<void>((resolve) => socket.write(Buffer.concat([body, Buffer.from(next)]), () => resolve()));
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume();
  await once(socket, 'close');
  const answers = parseAnswers(Buffer.concat(chunks));
  t.deepEqual(
    answers.map(({ status }) => status),
    [404],
  );
  t.is(answers[0]?.headers.connection, 'close');
  t.deepEqual(
    service.log.flatMap(({ msg, route }) => (msg === 'request' ? [route] : [])),
    ['unmatched'],
  );
});

test('a connection with a small rest is used again', async (t) => {
  const service = await scriptedService(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set<number | undefined>();
  for (let each = 0; each < 3; each += 1) {
    const sent = request({ port: service.port, host: '127.0.0.1', path: '/nowhere', method: 'POST', agent });
    sent.on('socket', (socket) => socket.once('connect', () => ports.add(socket.localPort)));
    sent.setHeader('content-length', AT_ONCE).end(Buffer.alloc(AT_ONCE));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    t.not(answer.headers.connection, 'close');
    await once(answer.resume(), 'close');
  }
  t.is(ports.size, 1);
  agent.destroy();
});
