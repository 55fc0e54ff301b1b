/** Structured logs: JSON lines on standard output. */
import { type DestinationStream, destination, type LevelWithSilent, type Logger as PinoLogger, pino } from 'pino';

export type Logger = PinoLogger;
export type LogLevel = LevelWithSilent;

/** The levels that LOG_LEVEL may name. */
export const LOG_LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** A logger, and a way to write out what it still holds. */
export interface LogSink {
  readonly logger: Logger;
  flush(): void;
}

/** Milliseconds that a line may wait for others to be written with it. */
const FLUSH_INTERVAL = 500;

/**
 * A logger on standard output. Lines are gathered into blocks, since a system call each would cost more than a request's other bookkeeping;
 * a block waits at most half a second.
 */
export function createLogSink(level: LogLevel): LogSink {
  const stream = destination({ dest: 1, sync: false, minLength: 12 * 1024, periodicFlush: FLUSH_INTERVAL });
  return { logger: createLogger(level, stream), flush: () => stream.flushSync() };
}

/** A logger on a stream. Errors are written with their message and stack, so no error may hold a key, an input or a choice. */
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

/** pino's `isoTime`, which makes a date of every line: here all that changes within a second is the milliseconds. */
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
