/**
 * Reads the requests of HTTP/1.1 connections in small pieces. Node gives its parser a whole read of a socket, which is
 * 64 KiB or 2,500 small requests, and all of them are dispatched at once. Here the parser gets a piece when the
 * connection has its turn, and nothing while as many requests as one connection may ask at a time wait for their
 * answers. What is not read stays in the kernel, and then with the sender.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { MAX_PIPELINED } from '../http/bounds.ts';
import type { HttpRequest, HttpResponse } from '../http/messages.ts';
import { type Line, takeTurn, type Work } from '../http/turns.ts';

/** Bytes that the parser gets at once: a few dozen of the smallest requests, or what is certain to belong to one. */
const PIECE = 1024;
const MOST = 32 * 1024;

/** What Node keeps on the socket of an HTTP/1.1 connection. */
interface Http1Socket extends Socket {
  /** Null once the connection is no longer HTTP's. */
  parser?: { readonly incoming: IncomingMessage | null } | null;
  /** Whether answers that wait to be read keep it from reading. */
  readonly _paused?: boolean;
}

/** One connection whose requests are read. */
interface Pipeline {
  /** Requests that have begun and whose answer has not left. */
  open: number;
  /** Requests that have begun since the last piece. */
  begun: number;
  /** The request whose body arrives, and how many of the next bytes are certain to belong to it. */
  arriving: IncomingMessage | null;
  certain: number;
  readonly wake: () => void;
}

/** The HTTP/1.1 connections of a port. */
export class Pipelines {
  readonly #all = new Map<Socket, Pipeline>();

  /** Reads for a connection that a server of Node's has just taken, whose `line` has the turns. */
  add(bare: Socket, line: Line): void {
    const socket = bare as Http1Socket;
    const [give] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    if (give === undefined) throw new Error('this Node does not read an HTTP/1.1 connection as it did');
    const work = (): ReturnType<Work> => {
      pipeline.begun = 0;
      const more = readPiece(socket, pipeline, give);
      queued = more;
      return { requests: pipeline.begun, more };
    };
    let queued = false;
    const wake = (): void => {
      if (queued) return;
      queued = true;
      takeTurn(line, work);
    };
    const pipeline: Pipeline = { open: 0, begun: 0, arriving: null, certain: 0, wake };
    this.#all.set(socket, pipeline);
    socket.once('close', () => this.#all.delete(socket));
    // Node's own way to read, past its streams, ends with a listener for `readable`.
    socket.off('data', give).on('readable', wake).on('resume', wake);
  }

  /** Notes that a request has begun. */
  began(request: HttpRequest, response: HttpResponse): void {
    const pipeline = this.#all.get(request.socket);
    if (pipeline === undefined) return;
    pipeline.open += 1;
    pipeline.begun += 1;
    response.once('close', () => {
      pipeline.open -= 1;
      if (pipeline.open === MAX_PIPELINED - 1) pipeline.wake();
    });
  }

  /** Reads no more requests on a connection; what arrives on it is discarded. */
  discard(socket: Socket): void {
    const pipeline = this.#all.get(socket);
    if (pipeline === undefined) return;
    this.#all.delete(socket);
    socket.off('readable', pipeline.wake).off('resume', pipeline.wake).resume();
  }

  /** Whether nothing but the rest of a request arrives on a connection, whose answer has left. */
  hasOnlyRest(socket: Socket): boolean {
    return this.#all.get(socket)?.open === 0 && (socket as Http1Socket).parser?.incoming?.complete === false;
  }
}

/** Gives the parser one piece, if it may have one. Returns whether there is another. */
function readPiece(socket: Http1Socket, pipeline: Pipeline, give: (bytes: Buffer) => void): boolean {
  const { parser } = socket;
  if (!parser || socket._paused === true || pipeline.open >= MAX_PIPELINED || isFull(parser.incoming)) return false;
  const most = parser.incoming === pipeline.arriving ? Math.min(MOST, Math.max(PIECE, pipeline.certain)) : PIECE;
  const bytes = socket.read(Math.min(most, socket.readableLength)) as Buffer | null;
  if (bytes === null) return false;
  give(bytes);
  noteBody(parser.incoming, pipeline, bytes.length);
  if (socket.readableLength > 0) return true;
  // Reads on, or ends the stream.
  socket.read(0);
  return false;
}

/** Whether the body that arrives has to be read before more of it is wanted. */
function isFull(request: IncomingMessage | null): boolean {
  if (request === null || request.complete || request.destroyed) return false;
  return request.readableLength >= request.readableHighWaterMark;
}

/** Notes how much of a body is certain to come: a large one need not be read in small pieces. */
function noteBody(request: IncomingMessage | null, pipeline: Pipeline, given: number): void {
  if (request === null || request.complete) {
    pipeline.certain = 0;
  } else if (request === pipeline.arriving) {
    pipeline.certain = Math.max(0, pipeline.certain - given);
  } else {
    const length = Number(request.headers['content-length'] ?? 0);
    pipeline.certain = Math.max(0, length - given);
  }
  pipeline.arriving = request;
}
