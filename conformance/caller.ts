/**
 * Sends requests to one deployment. A request whose answer says when to try again is sent again, within a bound on the
 * waits. The check is skipped if a limit lasts longer than that, or if the deployment no longer answers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, show } from './answer.ts';
import { type Call, methodOf, type Send, Silence } from './call.ts';
import { createHttp1 } from './http1.ts';
import { createHttp2 } from './http2.ts';
import { BrokenPromise, Skipped } from './outcome.ts';

/** Sends requests, with patience. Both methods throw BrokenPromise where no answer comes, and Skipped. */
export interface Caller {
  http1(call: Call): Promise<Answer>;
  http2(call: Call): Promise<Answer>;
  close(): void;
}

/** Which deployment is called, and how. */
export interface CallerOptions {
  readonly url: URL;
  /** The address that speaks HTTP/2, if it is another one. */
  readonly http2Url?: URL | undefined;
  /** A certificate authority, PEM. */
  readonly ca?: string | undefined;
  /** Accepts any certificate. */
  readonly insecure?: boolean;
  /** Milliseconds that an answer may take; by default `TIMEOUT`. */
  readonly timeout?: number;
}

/** Milliseconds that an answer may take: as long as a service may take for any call. */
const TIMEOUT = 30_000;
/** Milliseconds that one request may spend waiting to be tried again. */
const PATIENCE = 20_000;
/** Milliseconds that all requests of a run together may spend waiting; bounds how long a run takes. */
const PATIENCE_IN_ALL = 120_000;
/** Milliseconds of a wait at least, so that an answer that names 0 is not followed by a loop without a pause. */
const SHORTEST_WAIT = 100;
/** Requests in a row without an answer after which no more are sent. */
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

/** The gRPC status of a limit that was exceeded. */
const RESOURCE_EXHAUSTED = '8';

function isLimit({ status, trailers }: Answer): boolean {
  return status === 429 || trailers['grpc-status'] === RESOURCE_EXHAUSTED;
}

/**
 * Milliseconds after which the request is to be tried again; undefined if it is not. A limit that names no time lasts
 * for ever here.
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
