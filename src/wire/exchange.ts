/** One HTTP request and its response, from the first header to the log line. */
import type { Caller } from '../domain/callers.ts';
import type { ErrorReason } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import type { Call, CallFacts } from '../service/call.ts';
import { createStoreBudget } from '../stores/budget.ts';
import type { HttpRequest, HttpResponse } from './http.ts';
import type { TraceContext } from './traces/trace-parent.ts';

export type Protocol = 'rest' | 'grpc' | 'connect';

/** Before the gate has run, nobody is known. */
const NOBODY: Caller = { kind: 'anonymous', address: '' };

/** The record of one exchange. It is the `Call` that handlers see. */
export class Exchange implements Call {
  readonly requestId = newId('req_');
  readonly startedAt = performance.now();
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly facts: CallFacts = {};
  readonly storeBudget = createStoreBudget();
  protocol: Protocol = 'rest';
  /** The route's template or the RPC's path; bounded in number, so that it can label metrics. */
  route = 'unmatched';
  caller: Caller = NOBODY;
  deadline: number;
  /** When the gate let it in, and when its handler began with the decoded request; on the clock of `performance.now()`. */
  admittedAt: number | undefined;
  invokedAt: number | undefined;
  /** From when until when work for it went on in the engine, and when it was over. */
  engineSince: number | undefined;
  engineUntil: number | undefined;
  endedAt = 0;
  /** The span that this exchange has been recorded as, or else the caller's; known when the exchange is over. */
  trace: TraceContext | undefined;
  /** Why the exchange failed, if it did. */
  reason: ErrorReason | undefined;
  /** The fault behind an `internal` error, for the log alone. */
  cause: unknown;
  #departure: AbortController | undefined;
  #gone = false;
  #over = false;
  #users = 0;
  #lease: { release(): void } | undefined;

  /** @param timeout milliseconds from now to the deadline. */
  constructor(request: HttpRequest, response: HttpResponse, timeout: number) {
    this.request = request;
    this.response = response;
    this.deadline = this.startedAt + timeout;
  }

  /** Aborted when the caller is gone. Made on first use: most exchanges end before anybody asks. */
  get signal(): AbortSignal {
    if (this.#departure === undefined) {
      this.#departure = new AbortController();
      if (this.#gone) this.#departure.abort();
    }
    return this.#departure.signal;
  }

  /** Keeps a lease of the caller's limits until the exchange is over and nothing works for it any more. */
  hold(lease: { release(): void }): void {
    this.#lease = lease;
    this.#settle();
  }

  retain(): () => void {
    let retained = true;
    this.engineSince = performance.now();
    this.#users += 1;
    return () => {
      if (!retained) return;
      retained = false;
      this.engineUntil = performance.now();
      this.#users -= 1;
      this.#settle();
    };
  }

  /** The exchange is over: what it held goes back. */
  finish(): void {
    this.#over = true;
    this.endedAt = performance.now();
    this.#settle();
  }

  #settle(): void {
    if (!this.#over || this.#users > 0) return;
    this.#lease?.release();
    this.#lease = undefined;
  }

  /** The caller is gone: whoever works for it may stop. */
  depart(): void {
    this.#gone = true;
    this.#departure?.abort();
  }

  get departed(): boolean {
    return this.#gone;
  }
}
