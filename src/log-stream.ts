/**
 * Log lines on their way to standard output, which may be a pipe that nobody reads. The lines that wait are bounded:
 * any more are dropped and counted, and a line says so once somebody reads again. Nothing here blocks: a thread of the
 * pool that wrote to a full pipe would keep the process from ever ending.
 */
import type { Writable } from 'node:stream';
import { visible } from './visible.ts';

/** What a logger writes to. It never makes the logger wait. */
export interface LogStream {
  /** Takes one line with its end, or drops it. Characters that act on a screen are written as JSON escapes them. */
  write(line: string): void;
  /** How many lines were dropped. */
  dropped(): number;
  /** Resolves when all accepted lines are written, or after `within` milliseconds, when the rest is given up. */
  flush(within: number): Promise<void>;
}

/** Bounds of a log stream; the defaults are 16 MiB and half a second. */
export interface LogStreamOptions {
  /** Bytes that may wait, in blocks and in the output's own queue; they take little more memory than that. */
  readonly maxBytes?: number;
  /** Milliseconds that a line may wait for others to be written with it. */
  readonly interval?: number;
}

/**
 * Lines are gathered into blocks of this many bytes, since a system call for each line would cost more than the rest
 * of a request's bookkeeping.
 */
const BLOCK_BYTES = 12 * 1024;
const MAX_BYTES = 16 * 1024 * 1024;
const INTERVAL = 500;
/** What most lines do not have, so that they need not be looked at closely. */
const FOREIGN = /[^\n\x20-\x7e]/;

/** A stream to `output`. Once the output has failed, as a pipe does whose reader left, every line is dropped. */
export function createLogStream(output: Writable, options: LogStreamOptions = {}): LogStream {
  const { maxBytes = MAX_BYTES, interval = INTERVAL } = options;
  let block = '';
  let blockBytes = 0;
  let dropped = 0;
  let unreported = 0;
  let failed = false;
  let timer: NodeJS.Timeout | undefined;

  /** Empties the block and returns what it held. */
  const taken = (): string => {
    const text = block;
    block = '';
    blockBytes = 0;
    return text;
  };

  output.on('error', () => {
    failed = true;
    taken();
  });
  output.on('drain', report);

  const send = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (block === '' || failed) return;
    // As bytes: a concatenated string keeps every piece of it alive for as long as it waits, and a block of lines took
    // seven times its size.
    output.write(Buffer.from(taken()));
  };

  const add = (line: string, bytes: number): void => {
    block += line;
    blockBytes += bytes;
  };

  /** Writes how many lines were lost, once there is room to say so. */
  function report(): void {
    if (unreported === 0 || failed) return;
    const line = {
      level: 'warn',
      time: new Date().toISOString(),
      dropped: unreported,
      msg: 'log lines were dropped: nobody read them',
    };
    unreported = 0;
    const text = `${JSON.stringify(line)}\n`;
    add(text, Buffer.byteLength(text));
    send();
  }

  return {
    write(written) {
      // JSON escapes the controls of ASCII alone, and some of what callers send is logged.
      const line = FOREIGN.test(written) ? `${visible(written.slice(0, -1))}\n` : written;
      const bytes = Buffer.byteLength(line);
      if (failed || output.writableLength + blockBytes + bytes > maxBytes) {
        dropped += 1;
        unreported += 1;
        return;
      }
      add(line, bytes);
      if (blockBytes >= BLOCK_BYTES) send();
      else timer ??= setTimeout(send, interval).unref();
    },
    dropped: () => dropped,
    async flush(within) {
      send();
      if (failed || output.writableLength === 0) return;
      const written = Promise.withResolvers<void>();
      const timeout = setTimeout(written.resolve, within);
      output.once('error', () => written.resolve());
      output.write('', () => written.resolve());
      await written.promise;
      clearTimeout(timeout);
    },
  };
}
