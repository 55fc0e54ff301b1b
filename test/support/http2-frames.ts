/**
 * HTTP/2 frames written byte by byte (RFC 9113, 4.1), for what no client would send, and a client that sends what it is
 * told to and tells which it got: it reads, acknowledges and answers nothing by itself. Headers are literals without
 * indexing (RFC 7541, 6.2.2).
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  rst: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;

export const FLAG = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

/** The headers of a body of JSON, and of gRPC. */
export const JSON_HEADERS = [['content-type', 'application/json']] as const;
export const GRPC_HEADERS = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const;

/** One frame; `length` may lie about the payload. */
export function frame(
  type: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
  flags = 0,
  length: number = payload.length,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length & 0xffffff, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** A health watch of the whole server: a call by gRPC with an empty message. */
export const watch = (stream: number): Buffer =>
  Buffer.concat([
    headers(stream, request('POST', '/grpc.health.v1.Health/Watch', GRPC_HEADERS), 0),
    frame(TYPE.data, stream, Buffer.alloc(5), FLAG.endStream),
  ]);

/** Four bytes. */
export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** A number with a prefix of seven bits (RFC 7541, 5.1), as lengths of texts have it; none here is Huffman-coded. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  const head: number[] = [];
  if (bytes.length < 127) {
    head.push(bytes.length);
  } else {
    head.push(127);
    let rest = bytes.length - 127;
    while (rest >= 128) {
      head.push((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    head.push(rest);
  }
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** A block of headers. */
export function block(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** The headers that every request has. */
export function request(
  method: string,
  path: string,
  more: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  return [[':method', method], [':path', path], [':scheme', 'http'], [':authority', 'a'], ...more];
}

/** SETTINGS with these values by their identifiers. */
export function settings(values: Readonly<Record<number, number>> = {}): Buffer {
  const pairs = Object.entries(values).map(([id, value]) => {
    const pair = Buffer.alloc(6);
    pair.writeUInt16BE(Number(id), 0);
    pair.writeUInt32BE(value, 2);
    return pair;
  });
  return frame(TYPE.settings, 0, Buffer.concat(pairs));
}

/** HEADERS with their end; `flags` END_STREAM unless said otherwise. */
export function headers(
  stream: number,
  list: readonly (readonly [string, string])[],
  flags: number = FLAG.endStream,
): Buffer {
  return frame(TYPE.headers, stream, block(list), FLAG.endHeaders | flags);
}

export const rst = (stream: number, code: number): Buffer => frame(TYPE.rst, stream, word(code));
export const goaway = (last: number, code: number): Buffer =>
  frame(TYPE.goaway, 0, Buffer.concat([word(last), word(code)]));
export const windowUpdate = (stream: number, by: number): Buffer => frame(TYPE.window, stream, word(by));

/** A frame as it came. */
export interface Received {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export interface RawHttp2 {
  readonly socket: Socket;
  readonly received: readonly Received[];
  /** Whether the server has closed the connection. */
  readonly closed: boolean;
  send(...frames: readonly Uint8Array[]): void;
  /** The first frame of a type, of any stream or one; waits for it. */
  until(type: number, stream?: number, timeout?: number): Promise<Received>;
  untilClosed(timeout?: number): Promise<void>;
  destroy(): void;
}

const TIMEOUT = 20_000;

/** An acknowledgement of the server's SETTINGS. */
export const SETTINGS_ACK = frame(TYPE.settings, 0, Buffer.alloc(0), FLAG.ack);

export interface RawOptions {
  readonly localAddress?: string;
  /** False leaves all that comes in the kernel. */
  readonly reading?: boolean;
  /** False leaves the server's SETTINGS without an acknowledgement. */
  readonly acknowledging?: boolean;
}

/** Opens one: sends the preface, SETTINGS with these values, and an acknowledgement of the server's. */
export async function openRawHttp2(
  port: number,
  values: Readonly<Record<number, number>> = {},
  { localAddress = '127.0.0.1', reading = true, acknowledging = true }: RawOptions = {},
): Promise<RawHttp2> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  await once(socket, 'connect');
  const received: Received[] = [];
  let rest = Buffer.alloc(0);
  let closed = false;
  const closing = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  void closing.then(() => {
    closed = true;
  });
  if (reading) {
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (;;) {
        const length = rest.length < 9 ? Number.POSITIVE_INFINITY : rest.readUIntBE(0, 3);
        if (rest.length < 9 + length) return;
        received.push({
          type: rest.readUInt8(3),
          flags: rest.readUInt8(4),
          stream: rest.readUInt32BE(5) & 0x7fffffff,
          payload: rest.subarray(9, 9 + length),
        });
        rest = rest.subarray(9 + length);
      }
    });
  }
  socket.write(Buffer.concat([PREFACE, settings(values), acknowledging ? SETTINGS_ACK : Buffer.alloc(0)]));
  return {
    socket,
    received,
    get closed() {
      return closed;
    },
    send: (...frames) => void socket.write(Buffer.concat(frames)),
    async until(type, stream, timeout = TIMEOUT) {
      const deadline = performance.now() + timeout;
      for (;;) {
        const found = received.find((each) => each.type === type && (stream === undefined || each.stream === stream));
        if (found !== undefined) return found;
        if (performance.now() > deadline) throw new Error(`no frame of type ${type} came`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    async untilClosed(timeout = TIMEOUT) {
      const timer = setTimeout(() => socket.destroy(new Error('late')), timeout);
      const before = performance.now();
      await closing;
      clearTimeout(timer);
      if (performance.now() - before >= timeout) throw new Error('the server kept the connection');
    },
    destroy: () => socket.destroy(),
  };
}
