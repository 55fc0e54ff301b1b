/**
 * An HTTP/2 client that sends the frames it is told to and tells which it got: it reads, acknowledges and answers
 * nothing by itself.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { FLAG, frame, PREFACE, settings, TYPE } from './http2-frames.ts';

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

/** Opens one: sends the preface and SETTINGS with these values. `reading` false leaves all that comes in the kernel. */
export async function openRawHttp2(
  port: number,
  values: Readonly<Record<number, number>> = {},
  { localAddress = '127.0.0.1', reading = true }: { readonly localAddress?: string; readonly reading?: boolean } = {},
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
  socket.write(Buffer.concat([PREFACE, settings(values), frame(TYPE.settings, 0, Buffer.alloc(0), FLAG.ack)]));
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
