/** Structured logs: JSON lines on standard output; on a terminal, lines for people. */
import type { Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { type DestinationStream, type LevelWithSilent, type Logger as PinoLogger, pino } from 'pino';
import { createLogStream } from './log-stream.ts';
import { readable } from './terminal-log.ts';

/** The service's logger. Layers that need only a part of it declare that part as a type of their own. */
export type Logger = PinoLogger;
/** One of pino's levels, or `silent`. */
export type LogLevel = LevelWithSilent;

/** The levels that LOG_LEVEL may name. */
export const LOG_LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** A logger on an output, and what becomes of its lines. */
export interface LogSink {
  readonly logger: Logger;
  /** Lines that were dropped because nobody reads the output. */
  dropped(): number;
  /** Resolves when all lines are written, or after a second if nobody reads them. */
  flush(): Promise<void>;
}

/** Milliseconds that the process waits, before it exits, for its last lines to be read. */
const FLUSH_WITHIN = 1000;

/** A logger on an output: standard output, in a server. */
export function createLogSink(level: LogLevel, output: Writable): LogSink {
  const stream = createLogStream(output);
  const isTerminal = (output as Partial<WriteStream>).isTTY === true;
  const lines = isTerminal ? { write: (line: string) => stream.write(readable(line)) } : stream;
  return { logger: createLogger(level, lines), dropped: stream.dropped, flush: () => stream.flush(FLUSH_WITHIN) };
}

/**
 * A logger on a stream. Errors are written with their message and stack, so no error may hold a key, an
 * input or a choice.
 */
export function createLogger(level: LogLevel, stream: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: createIsoTime(),
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
}

/** Writes what pino's `isoTime` does, but makes no date for each line: within a second only the milliseconds change. */
function createIsoTime(): () => string {
  let second = Number.NaN;
  let upToSecond = '';
  return () => {
    const now = Date.now();
    const milliseconds = now % 1000;
    if (now - milliseconds !== second) {
      second = now - milliseconds;
      upToSecond = new Date(second).toISOString().slice(0, -4);
    }
    return `,"time":"${upToSecond}${String(milliseconds).padStart(3, '0')}Z"`;
  };
}
