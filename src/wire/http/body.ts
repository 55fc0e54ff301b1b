/**
 * The bytes of a request's body: read whole, within its bounds, and decompressed once before anything looks at them, so
 * that a compressed body is bounded and counted by what it becomes; or discarded, if they are not wanted.
 */
import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { BodyMeter } from '../../domain/body-limits.ts';
import { callerLeft } from '../../domain/call.ts';
import { DomainError } from '../../domain/errors.ts';
import { MAX_BODY_BYTES } from './bounds.ts';
import { type HttpRequest, isHttp2, wasReset } from './messages.ts';

/**
 * The bytes of one body so far; none at first. The first chunk is not copied: most bodies have only one. The chunks are
 * put together as they come, so that they take memory for their bytes alone, however small they are.
 */
export class ByteCollector {
  #buffer: Uint8Array = new Uint8Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) {
      this.#buffer = chunk;
    } else {
      if (length > this.#buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#buffer.length, length));
        larger.set(this.bytes());
        this.#buffer = larger;
      }
      this.#buffer.set(chunk, this.#length);
    }
    this.#length = length;
  }

  /** All bytes so far. */
  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** Within what a body is read. */
export interface BodyBounds {
  /** The bytes that it may have. */
  readonly most: number;
  /** Counts its bytes as they arrive. */
  readonly meter: BodyMeter;
  /** Milliseconds until all of it must be there, and the fault if it is not; undefined where others watch over that. */
  readonly timeout: number | undefined;
  readonly late: () => DomainError;
}

const tooLarge = (most: number): DomainError =>
  new DomainError('BODY_TOO_LARGE', `the body is larger than ${most} bytes`);

/**
 * The whole body. What is left unread, because of a fault, is then read and discarded.
 *
 * @throws DomainError BODY_TOO_LARGE as soon as that is known, CANCELED if the caller leaves, `late`, or what the meter
 * finds.
 */
export function readBody(request: HttpRequest, { most, meter, timeout, late }: BodyBounds): Promise<Uint8Array> {
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) > most) return Promise.reject(tooLarge(most));
  const beyond = meter.count(0);
  if (beyond !== undefined) return Promise.reject(beyond);
  return new Promise((resolve, reject) => {
    const collected = new ByteCollector();
    // A request that had been closed before never says so; the process need not wait for its end.
    const timer = timeout === undefined ? undefined : setTimeout(() => fail(late()), timeout).unref();
    const stop = (): void => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
    };
    const fail = (fault: DomainError): void => {
      stop();
      throwRestAway(request);
      reject(fault);
    };
    const onData = (chunk: Buffer): void => {
      const fault = collected.length + chunk.length > most ? tooLarge(most) : meter.count(chunk.length);
      if (fault === undefined) collected.add(chunk);
      else fail(fault);
    };
    const onGone = (): void => fail(callerLeft());
    const onEnd = (): void => {
      if (wasReset(request)) {
        onGone();
        return;
      }
      stop();
      resolve(collected.bytes());
    };
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

/** The one compression that is supported. */
export const GZIP = 'gzip';

/** Bytes that one byte of DEFLATE can become: the longest match, 258 bytes, takes two bits. */
const MOST_RATIO = 1032;

const unzip = promisify(gunzip);

/**
 * Decompresses; `meter` counts the bytes that compression had saved. Nothing beyond the bound of a body is unpacked.
 *
 * @throws DomainError `broken` if the bytes are not gzip, BODY_TOO_LARGE, or what the meter finds.
 */
export async function unpack(bytes: Uint8Array, meter: BodyMeter, broken: () => DomainError): Promise<Uint8Array> {
  let plain: Uint8Array | undefined;
  let tooMuch = false;
  try {
    plain = await unzip(bytes, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    tooMuch = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
  }
  // A body that is refused has been unpacked in part, and zlib does not say how far: the most that is possible counts.
  const became = plain?.length ?? Math.min(MAX_BODY_BYTES, MOST_RATIO * bytes.length);
  const fault = meter.count(Math.max(0, became - bytes.length));
  if (plain === undefined) throw tooMuch ? tooLarge(MAX_BODY_BYTES) : broken();
  if (fault !== undefined) throw fault;
  return plain;
}

// Large bodies are processed one at a time, each in a turn of the event loop of its own: one may hold the serving
// thread for some milliseconds, but if many that arrive together were processed in one turn, everybody else would wait
// for the sum of them.

/** Bytes above which a body waits for its turn; a decision with 300 choices has a fraction of that. */
export const LARGE = 64 * 1024;

/** Resolves when the last body that waits has its turn. The thread has one event loop, and so one queue. */
let last: Promise<void> = Promise.resolve();

/** Resolves when it is the turn of a body with this many bytes; undefined if it need not wait. */
export function bodyTurn(bytes: number): Promise<void> | undefined {
  if (bytes <= LARGE) return undefined;
  last = last.then(() => nextTurn());
  return last;
}

// The rest of a request that is answered before all of it has arrived is read and discarded, so that the answer is not
// lost in a reset connection: a small rest at once, a large one in pieces, few of them at a time. Reading a flood as
// fast as it comes would keep the serving thread from everybody else, although each of its requests was refused.
//
// The answer before a large rest says that its connection closes (RFC 9112, 9.3). A proxy that keeps connections would
// else send another caller's request behind the rest, where it would wait until that is read.

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
