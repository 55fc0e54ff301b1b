/**
 * What is left of a request that is answered before it has arrived is read and thrown away, so that the answer is not
 * lost in a reset connection: a small rest at once, a large one piece by piece, few pieces at a time. Reading a flood
 * as fast as it comes would keep the serving thread from everybody else, although each of its requests was refused.
 */
import { type HttpRequest, isHttp2 } from './messages.ts';

/**
 * Bytes that are read of a rest at once: most requests that are refused are small, and their connections
 * are used again.
 */
const AT_ONCE = 64 * 1024;
/**
 * Of all rests together so many pieces, each of at most what one read of a socket gives (64 KiB), are read every so
 * many milliseconds: 25 MB/s.
 */
const PIECES = 4;
const INTERVAL = 10;

/**
 * Rests that wait for their next piece, the one that has waited longest first. The thread has one event loop,
 * and so one line.
 */
const waiting = new Set<HttpRequest>();
/** Rests that somebody reads already. */
const known = new WeakSet<HttpRequest>();
let timer: NodeJS.Timeout | undefined;

/** Reads what is left of a request, if anything is, and throws it away. Whoever read it before must not read on. */
export function throwRestAway(request: HttpRequest): void {
  if (known.has(request)) return;
  if (isHttp2(request) || isSmall(request)) {
    request.resume();
    return;
  }
  known.add(request);
  let free = AT_ONCE;
  request.on('data', ({ length }: Buffer) => {
    free -= length;
    if (free > 0) return;
    request.pause();
    waiting.add(request);
    timer ??= setInterval(readOn, INTERVAL).unref();
  });
  request.on('close', () => waiting.delete(request)).resume();
}

/** Whether the body of an HTTP/1.1 request is small, or there is none: one has a length or comes in chunks. */
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
