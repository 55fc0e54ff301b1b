/**
 * gRPC calls that cost their caller little: the frames of HTTP/2 (RFC 9113) are written from bytes prepared once, and
 * answers are read no further than their status. A client library would take as much CPU time as the server.
 */
import { connect } from 'node:net';
import type { Caller, Outcome } from './callers.ts';

/** One connection for many callers. */
export interface GrpcConnection {
  caller(): Caller;
  close(): void;
}

// Types of frames, flags and sizes, as in RFC 9113.
const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const WINDOW_UPDATE = 8;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const FRAME_HEAD = 9;
/** Streams that the service allows on one connection. */
const MAX_STREAMS = 100;
/** Bytes of the largest window that HTTP/2 allows. */
const MAX_WINDOW = 2 ** 31 - 1;

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A string in HPACK (RFC 7541), without compression. */
function literal(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}

/** POST (static entry 3), http (6), and literals without indexing, whose names are static or, for `te`, written out. */
const requestHeaders = Buffer.concat([
  Buffer.from([0x83, 0x86, 0x04]),
  literal('/umpire.v1.DecisionService/CreateDecision'),
  Buffer.from([0x01]),
  literal('localhost'),
  Buffer.from([0x0f, 0x10]),
  literal('application/grpc'),
  Buffer.from([0x00]),
  literal('te'),
  literal('trailers'),
]);

function opening(): Buffer {
  const settings = Buffer.alloc(18);
  // No dynamic table, so that a status is always written out; no pushes; and, in effect, no flow control of answers.
  for (const [index, [id, value]] of [[1, 0] as const, [2, 0] as const, [4, MAX_WINDOW] as const].entries()) {
    settings.writeUInt16BE(id, 6 * index);
    settings.writeUInt32BE(value, 6 * index + 2);
  }
  const window = Buffer.alloc(4);
  window.writeUInt32BE(MAX_WINDOW - 65_535);
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(SETTINGS, 0, 0, settings),
    frame(WINDOW_UPDATE, 0, 0, window),
  ]);
}

// Values of grpc-status, with their length before them.
const OK = Buffer.from('\x010');
const UNAVAILABLE = Buffer.from('\x0214');

function outcomeOf(trailers: Buffer): Outcome {
  if (trailers.includes(UNAVAILABLE)) return 'refused';
  return trailers.includes(OK) ? 'ok' : 'failed';
}

/** Opens a connection to a port of this machine. */
export function grpcConnection(port: number): GrpcConnection {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const open = new Map<number, (outcome: Outcome) => void>();
  const waiting: (() => void)[] = [];
  let nextStream = 1;
  let received: Buffer = Buffer.alloc(0);
  socket.write(opening());

  const end = (stream: number, outcome: Outcome): void => {
    const give = open.get(stream);
    if (give === undefined) return;
    open.delete(stream);
    waiting.shift()?.();
    give(outcome);
  };

  const take = (type: number, flags: number, stream: number, payload: Buffer): void => {
    if (type === HEADERS && (flags & END_STREAM) !== 0) end(stream, outcomeOf(payload));
    else if (type === RST_STREAM || (type === DATA && (flags & END_STREAM) !== 0)) end(stream, 'failed');
    else if ((type === SETTINGS || type === PING) && (flags & ACK) === 0) {
      socket.write(frame(type, ACK, 0, type === PING ? Buffer.from(payload) : Buffer.alloc(0)));
    }
  };

  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    let at = 0;
    while (received.length >= at + FRAME_HEAD) {
      const length = received.readUIntBE(at, 3);
      const next = at + FRAME_HEAD + length;
      if (received.length < next) break;
      const type = received[at + 3] as number;
      take(type, received[at + 4] as number, received.readUInt32BE(at + 5), received.subarray(at + FRAME_HEAD, next));
      at = next;
    }
    received = received.subarray(at);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    for (const stream of [...open.keys()]) end(stream, 'failed');
  });

  return {
    caller: () => ({
      async send(message) {
        if (open.size >= MAX_STREAMS) await new Promise<void>((resolve) => waiting.push(resolve));
        if (socket.destroyed) return 'failed';
        const stream = nextStream;
        nextStream += 2;
        return await new Promise((resolve) => {
          open.set(stream, resolve);
          socket.write(
            Buffer.concat([
              frame(HEADERS, END_HEADERS, stream, requestHeaders),
              frame(DATA, END_STREAM, stream, message),
            ]),
          );
        });
      },
      close() {},
    }),
    close: () => void socket.destroy(),
  };
}
