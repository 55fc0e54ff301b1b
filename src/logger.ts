/** Structured logs: JSON lines on standard output; on a terminal, lines for people. */
import type { Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { type DestinationStream, type LevelWithSilent, type Logger as PinoLogger, pino } from 'pino';
import { createLogStream } from './log-stream.ts';

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

// The log for people: on a terminal each line can be read.

type Fields = Readonly<Record<string, unknown>>;

/** A line of JSON as a person reads it, in local time, with its end. */
function readable(json: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(json) as Fields;
  const urgency = level === 'info' || level === 'debug' ? '' : `${String(level).toUpperCase()} `;
  const stack = (err as { stack?: string } | undefined)?.stack;
  const cause = stack === undefined ? '' : `\n${stack}`;
  return `${new Date(String(time)).toTimeString().slice(0, 8)} ${urgency}${textOf(msg, fields)}${cause}\n`;
}

function textOf(message: unknown, fields: Fields): string {
  if (message === 'listening') return greeting(fields);
  if (message === 'request') {
    const { method, route, status, durationMs, model = '', reason = '', cause = '' } = fields;
    return `${method} ${route} ${status} ${durationMs} ms ${model} ${reason} ${cause}`.replaceAll(/ +/g, ' ').trim();
  }
  const details = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return details.length === 0 ? String(message) : `${message} (${details.join(', ')})`;
}

/** What is running, how to ask it, and what to read. */
function greeting({ version, host, port, tls, store }: Fields): string {
  const everywhere = host === '::' || host === '0.0.0.0';
  const name = everywhere ? 'localhost' : String(host).includes(':') ? `[${host}]` : host;
  const url = `${tls === true ? 'https' : 'http'}://${name}:${port}`;
  const place = typeof port === 'string' ? `the Unix socket ${port}` : url;
  const there = place === url && url !== 'http://localhost:8080' ? ` --url ${url}` : '';
  const who = everywhere && place === url ? ': whoever reaches this machine may ask (HOST=127.0.0.1: it alone)' : '';
  return `Umpire ${version} listens on ${place}${who}
  Catalogs and keys: ${store}
  Ask it: bin/umpire ask "I was charged twice" --question "Which team?" billing shipping${there}
  Read on: docs/asking-well.md; what is served: GET /; to stop it, press Ctrl+C`;
}
