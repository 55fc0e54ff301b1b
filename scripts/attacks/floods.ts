/**
 * Attacks on the serving thread: more than it can do in a turn of the event loop, from one address or eight, each
 * within what an address may send.
 */
import { connect as openSession } from 'node:http2';
import { connect, type Socket } from 'node:net';
import {
  FLAG,
  frame,
  headers,
  PREFACE,
  request,
  rst,
  settings,
  TYPE,
  watch,
  word,
} from '../../test/support/http2-frames.ts';
import type { Attack } from './attacks.ts';
import { ask, keptAgent, sleep, storeLargeCatalog, until } from './calls.ts';
import type { Target } from './target.ts';

/** What each connection of a flood sends. */
interface Flood {
  readonly connections: number;
  /** How many addresses they come from. */
  readonly addresses: number;
  readonly opening?: Uint8Array;
  /** What is sent again and again; called once for each time, so that streams can have new numbers. */
  readonly next: (round: number) => Uint8Array;
}

/** Sends as fast as it is taken until the time is over, over new connections where old ones are closed. */
async function flood(
  { port, http2Port = port }: Pick<Target, 'port' | 'http2Port'>,
  seconds: number,
  { connections, addresses, opening, next }: Flood,
): Promise<string> {
  const sockets = new Set<Socket>();
  let [sent, opened] = [0, 0];
  const open = (index: number): void => {
    const localAddress = `127.61.${index % addresses}.1`;
    const to = opening === undefined ? port : http2Port;
    const socket = connect({ port: to, host: '127.0.0.1', localAddress, noDelay: true });
    socket.on('error', () => {}).resume();
    sockets.add(socket);
    opened += 1;
    let round = 0;
    const write = (): void => {
      // One write in each turn, so that none of the connections is fed alone.
      const bytes = next(round);
      round += 1;
      sent += bytes.length;
      if (socket.write(bytes)) setImmediate(() => socket.writable && write());
      else socket.once('drain', write);
    };
    socket.once('connect', () => {
      if (opening !== undefined) socket.write(opening);
      write();
    });
    socket.once('close', () => {
      sockets.delete(socket);
      if (performance.now() < ends) setTimeout(open, 20, index);
    });
  };
  const ends = performance.now() + seconds * 1000;
  for (let index = 0; index < connections; index += 1) open(index);
  await until(seconds, () => new Promise((resolve) => setTimeout(resolve, 50)));
  for (const socket of sockets) socket.destroy();
  return `${opened} connections of ${addresses} addresses, ${(sent / seconds / 1e6).toFixed(1)} MB/s`;
}

/** A flood of HTTP/1.1 requests in pipelines. */
const pipelines =
  (addresses: number, ...requests: readonly string[]): Attack =>
  (target, seconds, scale = 64) => {
    const bytes = Buffer.from(requests.join('').repeat(Math.ceil(65_536 / requests.join('').length)));
    return flood(target, seconds, { connections: scale, addresses, next: () => bytes });
  };

const withBody = (line: string, body: string): string =>
  `${line} HTTP/1.1\r\nHost:x\r\nContent-Type:application/json\r\nContent-Length:${body.length}\r\n\r\n${body}`;

const OPENING = Buffer.concat([PREFACE, settings()]);
/** Streams of one round of a flood over HTTP/2. */
const STREAMS = 400;

/** A flood of streams that are taken back at once, one connection of each address. */
const resets =
  (addresses: number, one: (stream: number) => Uint8Array): Attack =>
  (target, seconds) =>
    flood(target, seconds, {
      connections: addresses,
      addresses,
      opening: OPENING,
      next: (round) =>
        Buffer.concat(
          Array.from({ length: STREAMS }, (_, index) => {
            const stream = 2 * (round * STREAMS + index) + 1;
            return Buffer.concat([one(stream), rst(stream, 8)]);
          }),
        ),
    });

/** A flood of frames that belong to no request. */
const frames =
  (addresses: number, ...each: readonly Uint8Array[]): Attack =>
  (target, seconds, scale = 16) => {
    const bytes = Buffer.concat(Array.from({ length: 1000 }, () => Buffer.concat(each)));
    return flood(target, seconds, { connections: scale, addresses, opening: OPENING, next: () => bytes });
  };

const EXPECTING = request('POST', '/v1/decisions', [
  ['expect', '100-continue'],
  ['content-type', 'application/json'],
]);

/** The body of a decision with a catalog, or none to read it. */
const ofCatalog = (how: string): { readonly path: string; readonly body?: string } => {
  if (how === 'get') return { path: '/v1/catalogs/large' };
  if (how === 'connect') return { path: '/umpire.v1.CatalogService/GetCatalog', body: '{"id":"large"}' };
  const decision = { model: 'minilm-l6', input: 'a', instruction: 'b', catalog: 'large' };
  return { path: '/v1/decisions', body: JSON.stringify(decision) };
};

/** Reads a catalog of 1 MiB, or decides with it, as fast as it is answered. */
const largeAnswers =
  (how: string): Attack =>
  async ({ port, issueKey }, seconds, scale = 8) => {
    const key = await issueKey('large');
    await storeLargeCatalog(port, key);
    let bytes = 0;
    const statuses = new Map<number, number>();
    await Promise.all(
      Array.from({ length: scale }, async () => {
        const agent = keptAgent();
        await until(seconds, async () => {
          const { status, text } = await ask(port, { ...ofCatalog(how), key, agent });
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          bytes += text.length;
        });
        agent.destroy();
      }),
    );
    const counts = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
    return `${counts}, ${(bytes / seconds / 2 ** 20).toFixed(0)} MiB/s of answers`;
  };

/** Asks a stream of reflection again and again, as fast as its window lets it; a new one where it is ended. */
const reflection: Attack = async ({ port, http2Port = port }, seconds, scale = 4) => {
  const symbol = Buffer.from('umpire.v1.DecisionService');
  const message = Buffer.concat([Buffer.from([0x22, symbol.length]), symbol]);
  const asked = Buffer.concat([Buffer.from([0]), word(message.length), message]);
  const bytes = Buffer.concat(Array.from({ length: 500 }, () => asked));
  let [streams, answered] = [0, 0];
  await Promise.all(
    Array.from({ length: scale }, async () => {
      await until(seconds, async () => {
        const session = openSession(`http://127.0.0.1:${http2Port}`, { settings: { initialWindowSize: 1 << 30 } });
        session.on('error', () => {});
        const ends = setTimeout(() => session.destroy(), seconds * 1000);
        const stream = session.request({
          ':method': 'POST',
          ':path': '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        streams += 1;
        stream
          .on('error', () => {})
          .on('data', (chunk: Buffer) => {
            answered += chunk.length;
          });
        const write = (): void => {
          while (stream.writable && stream.write(bytes));
        };
        stream.on('drain', write);
        write();
        await new Promise<void>((resolve) => stream.once('close', () => resolve()));
        clearTimeout(ends);
        session.destroy();
        await sleep(5);
      });
    }),
  );
  return `${streams} streams, ${(answered / seconds / 1e6).toFixed(1)} MB/s of answers`;
};

/** The floods by name. */
export const FLOODS: Readonly<Record<string, Attack>> = {
  pipelines: pipelines(1, 'GET / HTTP/1.1\r\nHost:x\r\n\r\n'),
  'pipelines-of-eight': pipelines(8, 'GET / HTTP/1.1\r\nHost:x\r\n\r\n'),
  'pipelines-of-posts': pipelines(8, withBody('POST /v1/decisions', '{}')),
  'pipelines-refused': pipelines(
    8,
    withBody('OPTIONS /v1/models', '{"a":1}'),
    withBody('POST /none', '[]'),
    withBody('POST /v1/catalogs', '{}'),
    'GET /umpire.v1.ModelService/ListModels?connect=v1&encoding=json&message=%7B%7D HTTP/1.1\r\nHost:x\r\n\r\n',
  ),
  'resets-of-few': resets(8, (stream) => headers(stream, EXPECTING, FLAG.endHeaders)),
  'resets-of-gets': resets(8, (stream) => headers(stream, request('GET', '/health/live'))),
  'resets-of-watches': resets(8, (stream) => watch(stream)),
  pings: frames(8, frame(TYPE.ping, 0, Buffer.alloc(8))),
  'settings-again': frames(8, settings({ 3: 100 }), frame(TYPE.priority, 1, Buffer.alloc(5))),
  'windows-and-nothing': frames(8, frame(TYPE.window, 0, word(1)), frame(0x42, 0, Buffer.alloc(4))),
  'large-answers': largeAnswers('get'),
  'large-decisions': largeAnswers('decision'),
  'large-over-connect': largeAnswers('connect'),
  'reflection-stream': reflection,
};
