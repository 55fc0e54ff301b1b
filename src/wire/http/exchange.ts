/**
 * One HTTP request and its response, from the first header to the log line. It is received, admitted, invoked, answered
 * and ended, and may fail or be given up on the way; its record says what happened, and nobody else writes it.
 */
import type { BodyMeter } from '../../domain/body-limits.ts';
import type { Caller } from '../../domain/callers.ts';
import { DomainError, type ErrorReason } from '../../domain/errors.ts';
import { newId } from '../../domain/ids.ts';
import type { Call, CallFacts } from '../../service/call.ts';
import { createStoreBudget } from '../../stores/budget.ts';
import { DEFAULT_TIMEOUT } from './bounds.ts';
import type { HttpRequest, HttpResponse } from './messages.ts';
import { parseTraceParent, type TraceContext } from './trace-parent.ts';

/** What an exchange speaks. gRPC-Web, which Connect answers, counts as Connect. */
export type Protocol = 'rest' | 'grpc' | 'connect';

/** The room that an exchange takes in the process, apart from its caller's limits. */
export interface Place {
  /**
   * Sets bytes aside for a response whose size is not known yet: the most that it may have. At once (no promise), or
   * when others have been settled. Throws or rejects with DomainError if the address, or all together, have too many
   * bytes waiting to be read.
   */
  reserve(bytes: number): Promise<void> | undefined;
  /** Says how many bytes the response has after all. */
  settle(bytes: number): void;
  /** Counts a request that no other limit counts. @throws DomainError if the address sends too many. */
  meter(): void;
  /** Resolves when the address has a turn of the event loop, for about a millisecond or for so many requests. */
  turn(requests?: number): Promise<void>;
  /** Notes that the caller has a valid key. */
  keyed(): void;
}

/** What happened to an exchange so far. Times are on the clock of `performance.now()`. */
export interface ExchangeRecord {
  readonly protocol: Protocol;
  /** The route's template or the RPC's path; bounded in number, so that it can label metrics. */
  readonly route: string;
  /** When the gate admitted it, and when its handler began with the decoded request. */
  readonly admittedAt?: number;
  readonly invokedAt?: number;
  /** When work for it in the engine began, and when it ended. */
  readonly engineSince?: number;
  readonly engineUntil?: number;
  /** When it was over; 0 until then. */
  readonly endedAt: number;
  /** Why it failed, if it did. */
  readonly reason?: ErrorReason;
  /** The fault behind an `internal` error, for the log alone. */
  readonly cause?: unknown;
  /** Why the wire gave it up, if it did. */
  readonly givenUp?: 'unread' | 'unfinished' | 'displaced';
  /** The span as which it was recorded, or else the caller's; known when it is over. */
  readonly trace?: TraceContext | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Metrics or traces: sees each exchange once, when it is over and before its log line is written. Never throws. */
export type Observer = (exchange: Exchange) => void;

/** Before the gate has run, nobody is known. */
const NOBODY: Caller = { kind: 'anonymous', address: '' };

/** An exchange. It is the `Call` that handlers see. */
export class Exchange implements Call {
  readonly requestId = newId('req_');
  readonly startedAt = performance.now();
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly facts: CallFacts = {};
  readonly storeBudget = createStoreBudget();
  readonly #record: Writable<ExchangeRecord> = { protocol: 'rest', route: 'unmatched', endedAt: 0 };
  #caller = NOBODY;
  #deadline = this.startedAt + DEFAULT_TIMEOUT;
  #place: Place | undefined;
  #departure: AbortController | undefined;
  #departed = false;
  #answered = false;
  #users = 0;
  #lease: { release(): void } | undefined;
  #answers: BodyMeter | undefined;

  constructor(request: HttpRequest, response: HttpResponse) {
    this.request = request;
    this.response = response;
  }

  get record(): ExchangeRecord {
    return this.#record;
  }

  get caller(): Caller {
    return this.#caller;
  }

  get deadline(): number {
    return this.#deadline;
  }

  /** Undefined where holdings are not counted, and for a peer that is gone already. */
  get place(): Place | undefined {
    return this.#place;
  }

  get departed(): boolean {
    return this.#departed;
  }

  /** Aborted when the caller is gone. Made on first use: most exchanges end before anybody asks. */
  get signal(): AbortSignal {
    if (this.#departure === undefined) {
      this.#departure = new AbortController();
      if (this.#departed) this.#departure.abort();
    }
    return this.#departure.signal;
  }

  /** Notes the place that it takes; undefined once it has given that back. */
  placed(place: Place | undefined): void {
    this.#place = place;
  }

  /** Notes what its head says. `timeout`: milliseconds from its beginning to the deadline. */
  received({ timeout, ...found }: { protocol?: Protocol; route?: string; timeout?: number }): void {
    Object.assign(this.#record, found);
    if (timeout !== undefined) this.#deadline = this.startedAt + timeout;
  }

  /** Notes the caller that the gate identified. */
  identified(caller: Caller): void {
    this.#caller = caller;
    if (caller.kind === 'key') this.#place?.keyed();
  }

  /**
   * Keeps a lease of the caller's limits until the work for the exchange is done, however long its response then waits
   * to be read.
   */
  hold(lease: { release(): void }): void {
    this.#lease = lease;
    this.#settle();
  }

  /** Counts the bytes of its answer with `meter`. */
  metered(meter: BodyMeter): void {
    this.#answers = meter;
  }

  /** Counts bytes of its answer. */
  sent(bytes: number): void {
    this.#answers?.(bytes);
  }

  /** Notes that the gate has admitted it. */
  admitted(): void {
    this.#record.admittedAt = performance.now();
  }

  /** Notes that its handler begins. @throws DomainError DEADLINE_EXCEEDED if the deadline has passed. */
  invoked(): void {
    const now = performance.now();
    if (now >= this.#deadline) {
      throw new DomainError('DEADLINE_EXCEEDED', 'the deadline passed before the request was read', { retryAfter: 1 });
    }
    this.#record.invokedAt = now;
  }

  retain(): () => void {
    let retained = true;
    this.#record.engineSince = performance.now();
    this.#users += 1;
    return () => {
      if (!retained) return;
      retained = false;
      this.#record.engineUntil = performance.now();
      this.#users -= 1;
      this.#settle();
    };
  }

  /** Notes that the handler is done, or never ran: only the response has to leave. */
  answered(): void {
    this.#answered = true;
    this.#settle();
  }

  /**
   * Notes the error that ended the work for it. Returns what the caller may see of that: an error that is not a
   * DomainError becomes `internal`. `cause` is for the log alone: the error, or what is behind a DomainError.
   */
  failed(error: unknown, cause: unknown = error instanceof DomainError ? error.cause : error): DomainError {
    const fault =
      error instanceof DomainError
        ? error
        : new DomainError('INTERNAL', 'an unexpected fault; the log has it under this request id');
    this.#record.reason = fault.reason;
    this.#record.cause = cause;
    this.answered();
    return fault;
  }

  /** Notes that the wire ends it before its response has left. */
  givenUp(why: NonNullable<ExchangeRecord['givenUp']>): void {
    this.#record.givenUp = why;
  }

  /** Notes that the caller is gone: work for it may stop. */
  depart(): void {
    this.#departed = true;
    this.#departure?.abort();
  }

  /** Notes that the response is closed, whether or not it was written. */
  ended(): void {
    if (!this.response.writableEnded) {
      this.#record.reason ??= 'CANCELED';
      this.depart();
    }
    this.#record.endedAt = performance.now();
    this.#record.trace = parseTraceParent(this.request.headers.traceparent);
    this.answered();
  }

  /** Notes the span as which it was recorded. */
  traced(span: TraceContext): void {
    this.#record.trace = span;
  }

  #settle(): void {
    if (!this.#answered || this.#users > 0) return;
    this.#lease?.release();
    this.#lease = undefined;
  }
}
