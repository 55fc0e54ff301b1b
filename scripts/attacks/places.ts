/**
 * Attacks on the places of the port: from one address or several of 127.0.0.0/8, each within its own bounds,
 * connections and requests are held that nobody serves. All are bounded in number, and closed when their time is over.
 */
import { connect, type Socket } from 'node:net';
import { FLAG, frame, headers, PREFACE, request, settings, TYPE, watch } from '../../test/support/http2-frames.ts';
import type { Attack } from './attacks.ts';
import { sleep } from './calls.ts';
import type { Target } from './target.ts';

/** What is held: on so many connections of each of so many addresses, what each connection sends. */
interface Siege {
  readonly addresses: number;
  readonly connections: number;
  readonly bytes: Uint8Array;
  /** Whether HTTP/2 is spoken, so that pings are answered. */
  readonly http2?: boolean;
}

/** Connections that one address opens at once, and in each tenth of a second later: fewer than it may. */
const AT_ONCE = 400;
const LATER = 8;

/** Holds all of that until the time is over, and opens what is closed again. */
async function besiege(target: Pick<Target, 'port' | 'http2Port'>, seconds: number, siege: Siege): Promise<string> {
  const { addresses, connections, bytes, http2 = false } = siege;
  const port = http2 ? (target.http2Port ?? target.port) : target.port;
  const open = Array.from({ length: addresses }, () => new Set<Socket>());
  let opened = 0;
  const add = (sockets: Set<Socket>, index: number): void => {
    const localAddress = `127.50.${1 + Math.floor(index / 250)}.${1 + (index % 250)}`;
    const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true });
    sockets.add(socket);
    opened += 1;
    socket.on('error', () => {}).on('data', (chunk: Buffer) => http2 && answerPings(socket, chunk));
    socket.once('close', () => sockets.delete(socket));
    socket.write(bytes);
  };
  const ends = performance.now() + seconds * 1000;
  for (let most = AT_ONCE; performance.now() < ends; most = LATER) {
    for (const [index, sockets] of open.entries())
      for (let count = 0; count < most && sockets.size < connections; count += 1) add(sockets, index);
    await sleep(100);
  }
  const left = open.reduce((sum, { size }) => sum + size, 0);
  for (const sockets of open) for (const socket of sockets) socket.destroy();
  return `${addresses} × ${connections} connections: ${opened} opened, ${left} open at the end`;
}

/** Answers the pings in a chunk that begins with a frame, as most do. */
function answerPings(socket: Socket, chunk: Buffer): void {
  for (let at = 0; at + 9 <= chunk.length; at += 9 + chunk.readUIntBE(at, 3))
    if (chunk[at + 3] === TYPE.ping && ((chunk[at + 4] ?? 0) & FLAG.ack) === 0 && at + 17 <= chunk.length)
      socket.write(frame(TYPE.ping, 0, chunk.subarray(at + 9, at + 17), FLAG.ack));
}

/** A preface with a window of 0, so that no body of an answer leaves, and a hundred requests. */
function unread(one: (stream: number) => Uint8Array): Buffer {
  return Buffer.concat([PREFACE, settings({ 4: 0 }), ...Array.from({ length: 100 }, (_, index) => one(2 * index + 1))]);
}

const LIST = '/umpire.v1.ModelService/ListModels';
const list = (stream: number): Buffer =>
  Buffer.concat([
    headers(stream, request('POST', LIST, [['content-type', 'application/json']]), 0),
    frame(TYPE.data, stream, Buffer.from('{}'), FLAG.endStream),
  ]);
const live = (stream: number): Buffer => headers(stream, request('GET', '/health/live'));
/** The head of a call, and the first byte of its body. */
const slowBody = (more = ''): Buffer =>
  Buffer.from(
    `POST ${LIST} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnect-Timeout-Ms: 30000\r\nContent-Length: 900\r\n${more}\r\n{`,
  );

/** The attacks by name. */
export const PLACE_ATTACKS: Readonly<Record<string, Attack>> = {
  'places-refused': (target, seconds, connections = 84) =>
    besiege(target, seconds, { addresses: 1, connections, bytes: unread(list), http2: true }),
  'places-unread': (target, seconds, connections = 11) =>
    besiege(target, seconds, { addresses: 12, connections, bytes: unread(live), http2: true }),
  'places-slow-bodies': (target, seconds, connections = 512) =>
    besiege(target, seconds, { addresses: 4, connections, bytes: slowBody() }),
  'places-slow-bodies-of-64': (target, seconds, connections = 32) =>
    besiege(target, seconds, { addresses: 64, connections, bytes: slowBody() }),
  'places-slow-heads': (target, seconds, connections = 512) =>
    besiege(target, seconds, { addresses: 4, connections, bytes: Buffer.from('GET /health/live HTTP/1.1\r\nHost: ') }),
  'places-watches': (target, seconds, connections = 32) =>
    besiege(target, seconds, {
      addresses: 64,
      connections,
      bytes: Buffer.concat([PREFACE, settings(), watch(1)]),
      http2: true,
    }),
  'places-watches-alone': (target, seconds, connections = 11) =>
    besiege(target, seconds, {
      addresses: 12,
      connections,
      bytes: Buffer.concat([PREFACE, settings(), ...Array.from({ length: 100 }, (_, index) => watch(2 * index + 1))]),
      http2: true,
    }),
  async 'places-keyed'(target, seconds, connections = 512) {
    const bytes = slowBody(`Authorization: Bearer ${await target.issueKey('siege')}\r\n`);
    return besiege(target, seconds, { addresses: 4, connections, bytes });
  },
};
