/**
 * The bytes of a request's body, whole: read within its bounds, and decompressed once before anything looks at them, so
 * that a compressed body is bounded and counted by what it becomes.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { MAX_BODY_BYTES } from './bounds.ts';
import { type HttpRequest, wasReset } from './messages.ts';
import { throwRestAway } from './unwanted.ts';

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

/** The fault of a request whose caller leaves before all of it is there. */
export const callerLeft = (): DomainError =>
  new DomainError('CANCELED', 'the caller left before its request was complete');

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
    const timer = timeout === undefined ? undefined : setTimeout(() => fail(late()), timeout);
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
