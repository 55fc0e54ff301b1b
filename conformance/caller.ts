/**
 * Requests to one deployment, with patience and its end. An answer that says when to try again is, within a bound; a
 * limit that lasts longer skips the check, and so does a deployment that has fallen silent.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, show } from './answer.ts';
import { type Call, methodOf, type Send, Silence } from './call.ts';
import { createHttp1 } from './http1.ts';
import { createHttp2 } from './http2.ts';
import { BrokenPromise, Skipped } from './outcome.ts';

/** Sends requests. Both throw BrokenPromise where no answer comes, and Skipped. */
export interface Caller {
  http1(call: Call): Promise<Answer>;
  http2(call: Call): Promise<Answer>;
  close(): void;
}

/** Where and how. PEM texts. */
export interface CallerOptions {
  readonly url: URL;
  /** Where HTTP/2 is spoken, if not under the same address. */
  readonly http2Url?: URL | undefined;
  readonly ca?: string | undefined;
  /** Takes any certificate. */
  readonly insecure?: boolean;
  /** Milliseconds that an answer may take; as long as any call may, by default. */
  readonly timeout?: number;
}

const TIMEOUT = 30_000;
/** Milliseconds that one request may wait until it is tried again, and all of them together. */
const PATIENCE = 20_000;
const PATIENCE_IN_ALL = 120_000;
const SHORTEST_WAIT = 100;
/** So many requests in a row without an answer are the last. */
const MAX_SILENT = 3;

/** A caller of one deployment, with connections that are kept. */
export function createCaller({ url, http2Url = url, timeout = TIMEOUT, ...tls }: CallerOptions): Caller {
  const http1 = createHttp1({ url, timeout, ...tls });
  const http2 = createHttp2({ url: http2Url, timeout, ...tls });
  let waited = 0;
  let silent = 0;

  const sendOnce = async (send: Send, call: Call): Promise<Answer> => {
    if (silent >= MAX_SILENT) throw new Skipped('the deployment does not answer any more');
    try {
      const answer = await send(call);
      silent = 0;
      return answer;
    } catch (error) {
      if (error instanceof Silence) silent += 1;
      if (error instanceof BrokenPromise) throw error;
      throw new BrokenPromise(`${methodOf(call)} ${call.path}: ${textOf(error)}`);
    }
  };

  const sendPatiently = async (send: Send, call: Call): Promise<Answer> => {
    for (let own = 0; ; ) {
      const answer = await sendOnce(send, call);
      const wait = call.once === true && !isLimit(answer) ? undefined : retryTime(answer);
      if (wait === undefined) return answer;
      if (own + wait > PATIENCE || waited + wait > PATIENCE_IN_ALL) {
        if (!isLimit(answer)) return answer;
        throw new Skipped(`a limit of this deployment is in the way: ${show(answer.body.toString())}`);
      }
      own += wait;
      waited += wait;
      await sleep(wait);
    }
  };

  return {
    http1: (call) => sendPatiently(http1.send, call),
    http2: (call) => sendPatiently(http2.send, call),
    close() {
      http1.close();
      http2.close();
    },
  };
}

const RESOURCE_EXHAUSTED = '8';

function isLimit({ status, trailers }: Answer): boolean {
  return status === 429 || trailers['grpc-status'] === RESOURCE_EXHAUSTED;
}

/**
 * Milliseconds after which the request may be tried again; undefined if it need not be. A limit that names no time is
 * one that lasts.
 */
function retryTime(answer: Answer): number | undefined {
  const { headers, trailers } = answer;
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const pushback = Number(trailers['grpc-retry-pushback-ms'] ?? Number.NaN);
  const milliseconds = Number.isNaN(seconds) ? pushback : seconds * 1000;
  if (milliseconds >= 0) return Math.max(milliseconds, SHORTEST_WAIT);
  return isLimit(answer) ? Number.POSITIVE_INFINITY : undefined;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code) : String(error);
}
