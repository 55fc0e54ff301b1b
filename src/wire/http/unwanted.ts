/**
 * The rest of a request that is answered before all of it has arrived is read and discarded, so that the answer is not
 * lost in a reset connection: a small rest at once, a large one in pieces, few of them at a time. Reading a flood as
 * fast as it comes would keep the serving thread from everybody else, although each of its requests was refused.
 *
 * The answer before a large rest says that its connection closes (RFC 9112, 9.3). A proxy that keeps connections would
 * else send another caller's request behind the rest, where it would wait until that is read.
 */
import { Socket } from 'node:net';
import { type HttpRequest, isHttp2 } from './messages.ts';

/**
 * Bytes of a rest that are read at once: most requests that are refused are small, and their connections are used
 * again.
 */
const AT_ONCE = 64 * 1024;
/** How many pieces of that size are read of all rests together in an interval, and its milliseconds: 25 MB/s. */
const PIECES = 4;
const INTERVAL = 10;

/**
 * Requests whose rest waits for its next piece, the one that has waited longest first. The thread has one event loop,
 * and so one queue.
 */
const waiting = new Set<HttpRequest>();
/** Requests whose rest may be large. */
const large = new WeakSet<HttpRequest>();
let timer: NodeJS.Timeout | undefined;

/** Reads the rest of a request, if there is any, and discards it. Whoever has read the request must have stopped. */
export function throwRestAway(request: HttpRequest): void {
  if (large.has(request)) return;
  if (isHttp2(request) || isSmall(request)) {
    request.resume();
    return;
  }
  large.add(request);
  linger(request);
  let free = AT_ONCE;
  request.on('data', ({ length }: Buffer) => {
    free -= length;
    if (free > 0) return;
    free = AT_ONCE;
    request.pause();
    waiting.add(request);
    timer ??= setInterval(readOn, INTERVAL).unref();
  });
  request.on('close', () => waiting.delete(request)).resume();
}

/** Whether a request that is answered has a rest which may be large: the answer must be the connection's last. */
export function hasLargeRest(request: HttpRequest): boolean {
  return large.has(request) && !request.complete;
}

/**
 * Keeps a connection until the request is read. Node destroys it as soon as the last answer has left; the peer's kernel
 * would be sent a reset for what is unread, and may drop the answer.
 */
function linger(request: HttpRequest): void {
  const socket = request.socket as Socket;
  socket.destroySoon = () => socket.end();
  request.once('close', () => {
    socket.destroySoon = Socket.prototype.destroySoon;
    if (socket.writableEnded) socket.destroySoon();
  });
}

/** Whether an HTTP/1.1 request has a small body, or none: every body has a length or comes in chunks. */
function isSmall(request: HttpRequest): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return length === undefined ? coding === undefined : Number(length) <= AT_ONCE;
}

/** Lets the requests that waited longest read a piece each. */
function readOn(): void {
  let left = PIECES;
  for (const request of waiting) {
    if (left === 0) return;
    left -= 1;
    waiting.delete(request);
    request.resume();
  }
  if (waiting.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}
