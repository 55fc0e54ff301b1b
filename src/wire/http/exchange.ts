/** One HTTP request and its response, from the first header to the log line. */
import type { Caller } from '../../domain/callers.ts';
import type { ErrorReason } from '../../domain/errors.ts';
import { newId } from '../../domain/ids.ts';
import type { Call, CallFacts } from '../../service/call.ts';
import { createStoreBudget } from '../../stores/budget.ts';
import type { HttpRequest, HttpResponse } from './messages.ts';
import type { TraceContext } from './trace-parent.ts';

export type Protocol = 'rest' | 'grpc' | 'connect';

/** The room that an exchange takes in the process, beside its caller's limits. */
export interface Place {
  /**
   * Sets bytes aside for a response of which nobody knows the size yet: the most that it may have. At once (no promise), or when others are settled.
   * Throws or rejects with DomainError if the address, or all together, have too many bytes waiting to be read.
   */
  reserve(bytes: number): Promise<void> | undefined;
  /** Says how many bytes it has instead. */
  settle(bytes: number): void;
  /** Counts a request that no other limit counts. @throws DomainError if the address sends too many. */
  meter(): void;
}

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
  /** Undefined where nothing is counted, and for a peer that is gone already. */
  place: Place | undefined;
  /** Why the wire ended the exchange, if it did. */
  givenUp: 'unread' | 'unfinished' | 'displaced' | undefined;
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

  /** Keeps a lease of the caller's limits until the work for the exchange is done: nobody's limits depend on when a response is read. */
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

  /** The handler is done, or never ran: only the response has to leave. */
  worked(): void {
    this.#over = true;
    this.#settle();
  }

  /** The exchange is over. */
  finish(): void {
    this.endedAt = performance.now();
    this.worked();
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
