/**
 * HTTP/2 connections that arrive together hold up nobody else: each begins in a turn of its own, and addresses take
 * turns.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { createSessionTurns } from '../../../src/wire/listener/http2-sessions.ts';
import { send } from '../../support/http.ts';
import { frame, headers, PREFACE, request, settings, TYPE } from '../../support/http2-frames.ts';
import { scriptedService } from '../../support/service.ts';

const socketOf = (remoteAddress: string, destroyed = false): Socket => ({ remoteAddress, destroyed }) as Socket;

test('one begins in a turn, addresses in turns, and none that is gone when its turn comes', async (t) => {
  const turns = createSessionTurns();
  const begun: string[] = [];
  const take = (name: string, address: string, destroyed = false): void =>
    turns.take(socketOf(address, destroyed), arrived, () => begun.push(name));
  const arrived = turns.arrived();
  for (const name of ['a1', 'a2', 'a3']) take(name, '10.0.0.1');
  t.deepEqual(begun, ['a1'], 'the first at once');
  take('gone', '10.0.0.3', true);
  take('b1', '10.0.0.2');
  const seen: number[] = [];
  while (begun.length < 4) {
    seen.push(begun.length);
    await nextTurn();
  }
  t.deepEqual(begun, ['a1', 'a2', 'b1', 'a3']);
  t.true(
    seen.every((count, index) => index === 0 || count - (seen[index - 1] as number) <= 1),
    `${seen}`,
  );
});

test('while connections arrive none begins, but not for ever', async (t) => {
  const turns = createSessionTurns();
  let begun = 0;
  const first = turns.arrived();
  turns.arrived();
  const started = performance.now();
  for (let count = 0; count < 2; count++) turns.take(socketOf('10.0.0.1'), first, () => begun++);
  while (begun === 0) {
    turns.arrived();
    await nextTurn();
  }
  t.true(performance.now() - started >= 60);
  while (begun < 2) await nextTurn();
});

/**
 * Connections of one address, each with 100 requests behind its preface, and a request of another address behind them.
 * Returns how many of the connections had been answered when the request was.
 */
async function answeredBefore(port: number, connections: number): Promise<number> {
  const streams = Array.from({ length: 100 }, (_, index) => headers(2 * index + 1, request('GET', '/v1/models')));
  const bytes = Buffer.concat([PREFACE, settings(), ...streams]);
  const answered = new Set<Socket>();
  const others = Array.from({ length: connections }, () => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('error', () => {});
    socket.once('data', () => answered.add(socket));
    return socket;
  });
  const before = await new Promise<number>((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }, () =>
      socket.end('GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    );
    socket.once('data', () => resolve(answered.size));
  });
  for (const socket of others) socket.destroy();
  return before;
}

test('a caller whose connection comes behind many of another address is answered before these have begun', async (t) => {
  const { port } = await scriptedService(t, { LOG_LEVEL: 'warn' });
  // The connections must arrive within the milliseconds for which none begins; on a busy machine they may not.
  const tries: number[] = [];
  while (tries.length < 5 && !tries.some((before) => before < 10)) tries.push(await answeredBefore(port, 20));
  t.true((tries.at(-1) ?? 20) < 10, `of 20 had begun: ${tries}`);
});

test('pieces that came while a connection waited, the first of which breaks the protocol', async (t) => {
  const { port } = await scriptedService(t, { LOG_LEVEL: 'warn' });
  const broken = Buffer.concat([PREFACE, settings(), frame(TYPE.ping, 1, Buffer.alloc(8))]);
  const sockets = Array.from({ length: 60 }, () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, async () => {
      socket.write(broken);
      for (let piece = 0; piece < 20; piece++) {
        await nextTurn();
        socket.write(frame(TYPE.ping, 0, Buffer.alloc(8)));
      }
    });
    socket.on('error', () => {});
    return socket.resume();
  });
  // A fault that nothing caught would end this process.
  await Promise.all(sockets.map((socket) => once(socket, 'close')));
  t.is((await send(port, { path: '/health/live' })).status, 200);
});
