/**
 * Attacks on the port. All come from 127.0.0.1, are bounded in number, and leave nothing open when their time is over.
 */
import { connect, type Socket } from 'node:net';
import { OPENINGS, SEQUELS } from '../../test/support/http2-crash-cases.ts';
import { headers, JSON_HEADERS, PREFACE, request, rst, settings, watch } from '../../test/support/http2-frames.ts';
import { sleep } from './calls.ts';
import type { Target } from './target.ts';

/** Attacks a service until the time is over. Resolves to what it did, in words. */
export type Attack = (
  target: Pick<Target, 'port' | 'http2Port' | 'issueKey'>,
  seconds: number,
  connections?: number,
  streams?: number,
) => Promise<string>;

/**
 * A socket that sends bytes once it is connected and ignores all errors. With `reading` false it leaves answers in the
 * kernel.
 */
function open(port: number, bytes: Uint8Array, reading = true): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.1', noDelay: true });
  socket.on('error', () => {});
  if (reading) socket.resume();
  else socket.pause();
  socket.write(bytes);
  return socket;
}

/** Keeps `count` such sockets open until the time is over. `again`: replaces those that are closed. */
async function keepOpen(
  port: number,
  seconds: number,
  count: number,
  bytes: Uint8Array,
  { again = true, reading = true }: { readonly again?: boolean; readonly reading?: boolean } = {},
): Promise<{ readonly opened: number; readonly left: number }> {
  const sockets = new Set<Socket>();
  let opened = 0;
  const add = (): void => {
    const socket = open(port, bytes, reading);
    sockets.add(socket);
    opened += 1;
    socket.once('close', () => sockets.delete(socket));
  };
  const ends = performance.now() + seconds * 1000;
  const most = again ? 20 * count : count;
  while (performance.now() < ends) {
    for (let step = 0; step < 100 && sockets.size < count && opened < most; step += 1) add();
    await sleep(10);
  }
  const left = sockets.size;
  for (const socket of sockets) socket.destroy();
  return { opened, left };
}

/** A preface and the streams 1, 3, 5, … of one kind. */
function streams(
  count: number,
  one: (stream: number) => Uint8Array,
  values: Readonly<Record<number, number>> = {},
): Buffer {
  return Buffer.concat([PREFACE, settings(values), ...Array.from({ length: count }, (_, index) => one(2 * index + 1))]);
}

const GET = Buffer.from('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
const kept = ({ opened, left }: { readonly opened: number; readonly left: number }): string =>
  `${opened} connections opened, ${left} open at the end`;

/** The body of a decision whose answer is about 1 MiB. */
const LARGE = JSON.stringify({
  model: 'minilm-l6',
  input: 'a',
  instruction: 'b',
  choices: Array.from({ length: 300 }, (_, index) => `${index}${'\u4e00'.repeat(1100)}`),
});
const LARGE_POST = Buffer.from(
  `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(LARGE)}\r\n\r\n${LARGE}`,
);

/** The attacks by name. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  async 'expect-and-reset'({ port }, seconds) {
    const bytes = Buffer.concat([
      PREFACE,
      settings(),
      headers(1, request('GET', '/', [['expect', '100-continue']])),
      rst(1, 8),
    ]);
    const ends = performance.now() + seconds * 1000;
    let sent = 0;
    for (; performance.now() < ends; sent += 1) {
      const socket = open(port, bytes);
      await sleep(50);
      socket.destroy();
    }
    return `${sent} segments of ${bytes.length} bytes`;
  },
  async 'crash-cases'({ port }) {
    const start = Buffer.concat([PREFACE, settings()]);
    const cases = Object.values(OPENINGS).flatMap((opening) =>
      Object.values(SEQUELS).flatMap((sequel) => [
        [Buffer.concat([start, opening, sequel])],
        [start, Buffer.concat([opening, sequel])],
        [Buffer.concat([start, opening]), sequel],
      ]),
    );
    const count = cases.length;
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        for (let parts = cases.pop(); parts !== undefined; parts = cases.pop()) {
          const socket = open(port, parts[0] as Buffer);
          await sleep(15);
          if (parts[1] !== undefined) socket.write(parts[1]);
          await sleep(15);
          socket.destroy();
        }
      }),
    );
    return `${count} cases`;
  },
  async watches({ port }, seconds, scale = 300, each = 100) {
    return `${each} streams on each: ${kept(await keepOpen(port, seconds, scale, streams(each, watch), { again: false }))}`;
  },
  'connections-kept': async ({ port }, seconds, scale = 2100) => kept(await keepOpen(port, seconds, scale, GET)),
  'connections-silent': async ({ port }, seconds, scale = 2100) =>
    kept(await keepOpen(port, seconds, scale, Buffer.alloc(0))),
  'connections-h2': async ({ port }, seconds, scale = 2100) =>
    kept(
      await keepOpen(
        port,
        seconds,
        scale,
        streams(0, () => GET),
      ),
    ),
  async 'unread-http1'({ port }, seconds, scale = 130) {
    const bytes = Buffer.concat([LARGE_POST, LARGE_POST]);
    return kept(await keepOpen(port, seconds, scale, bytes, { reading: false, again: false }));
  },
  async 'unread-http2'({ port }, seconds, scale = 20, each = 100) {
    const read = (stream: number): Buffer => headers(stream, request('GET', '/v1/models'));
    return `${each} streams without a window on each: ${kept(await keepOpen(port, seconds, scale, streams(each, read, { 4: 0 }), { again: false }))}`;
  },
  async 'unfinished-http2'({ port }, seconds, scale = 30, each = 100) {
    const begin = (stream: number): Buffer => headers(stream, request('POST', '/v1/decisions', JSON_HEADERS), 0);
    return `${each} requests without an end on each: ${kept(await keepOpen(port, seconds, scale, streams(each, begin), { again: false }))}`;
  },
  async 'unfinished-http1'({ port }, seconds, scale = 1000) {
    const bytes = Buffer.from(
      'POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
    );
    return kept(await keepOpen(port, seconds, scale, bytes));
  },
  async 'rapid-reset'({ port }, seconds) {
    const pairs = streams(1000, (stream) =>
      Buffer.concat([headers(stream, request('POST', '/v1/decisions', JSON_HEADERS), 0), rst(stream, 8)]),
    );
    const ends = performance.now() + seconds * 1000;
    let opened = 0;
    await Promise.all(
      [1, 2, 3, 4].map(async () => {
        while (performance.now() < ends) {
          const socket = open(port, pairs);
          opened += 1;
          await Promise.race([new Promise((resolve) => socket.once('close', resolve)), sleep(1000)]);
          socket.destroy();
          await sleep(1);
        }
      }),
    );
    return `${opened} connections of 1,000 streams each`;
  },
  async 'requests-of-nothing'({ port }, seconds) {
    const get = Buffer.from('GET /none HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(200));
    const ends = performance.now() + seconds * 1000;
    let sent = 0;
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (performance.now() < ends) {
          const socket = open(port, get);
          const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
          for (let round = 0; round < 100 && !socket.destroyed && performance.now() < ends; round += 1) {
            sent += 200;
            if (!socket.write(get))
              await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))]);
            await sleep(1);
          }
          socket.destroy();
          await sleep(5);
        }
      }),
    );
    return `${sent} requests written`;
  },
};
