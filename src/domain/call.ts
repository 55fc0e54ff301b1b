/**
 * A call from its arrival until all work for it is done, whatever protocol it came by: the one carrier of a request's
 * life. Each layer reads it and adds what it knows. The wire extends it by the HTTP request and its response; to the
 * engine it is the terms of a job.
 */
import type { AnsweringStep, JobTerms, Unread } from '../engine/engine.ts';
import { createStoreBudget } from '../stores/budget.ts';
import type { Caller } from './authenticate.ts';
import type { BodyMeter } from './body-limits.ts';
import { DomainError } from './errors.ts';
import { newId } from './ids.ts';

/**
 * What a decision or a handler leaves for the request's log line, `Server-Timing` and metrics. Never a key, an input or
 * a choice.
 */
export interface CallFacts {
  model?: string;
  /** The languages that the model was measured in. */
  languages?: readonly string[] | undefined;
  inputTokens?: number;
  /** How much of the input the model has no words for. */
  unread?: Unread | undefined;
  choices?: number;
  confidence?: number;
  /** The digest of the catalog's learned state, if that decided. */
  learned?: string | undefined;
  /** Who answered for a cascade. */
  step?: AnsweringStep | undefined;
  /** Milliseconds by stage, as the engine reports them: `queue`, `tokenize`, `infer`. */
  timings?: Readonly<Record<string, number>>;
}

/** When its stages began or ended, on the clock of `performance.now()`; undefined for those that it has not reached. */
export interface CallTimes {
  /** The gate admitted it. */
  admittedAt?: number;
  /** Its handler began with the decoded request. */
  invokedAt?: number;
  /** Work for it in the engine began, and ended. */
  engineSince?: number;
  engineUntil?: number;
}

/** The room that a call takes in the process, apart from its caller's limits. */
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

/** A caller's place among its decisions in progress. */
export interface Lease {
  /** To be called once the work has ended, however it ended. Calling it again does nothing. */
  release(): void;
}

/** The fault of a call whose deadline has passed before all of it was read. */
export const unreadInTime = (): DomainError =>
  new DomainError('DEADLINE_EXCEEDED', 'the deadline passed before the request was read', { retryAfter: 1 });

/** The fault of a call whose caller leaves before all of it was read. */
export const callerLeft = (): DomainError =>
  new DomainError('CANCELED', 'the caller left before its request was complete');

/** A call, on which nobody works yet. What a layer finds out it sets, or notes with the method for it. */
export class Call implements JobTerms {
  readonly requestId = newId('req_');
  readonly startedAt = performance.now();
  deadline: number;
  /** Until the gate has run, nobody is known. */
  caller: Caller = { kind: 'anonymous', address: '' };
  /** The owner of the caller's key, or the address of an anonymous caller. */
  tenant = '';
  keyed = false;
  readonly facts: CallFacts = {};
  readonly times: CallTimes = {};
  /** How long it may still wait for stores in all. */
  readonly storeBudget = createStoreBudget();
  /** Undefined where holdings are not counted, and once it has given its place back. */
  place: Place | undefined;
  /** Counts the bytes of its answer. */
  answers: BodyMeter | undefined;
  /** Whether the caller is gone. */
  departed = false;
  #departure: AbortController | undefined;
  #answered = false;
  #engaged = false;
  #lease: Lease | undefined;

  /** `timeout`: milliseconds until its deadline. */
  constructor(timeout: number) {
    this.deadline = this.startedAt + timeout;
  }

  /** Aborted when the caller is gone. Made on first use: most calls end before anybody asks. */
  get signal(): AbortSignal {
    if (this.#departure === undefined) {
      this.#departure = new AbortController();
      if (this.departed) this.#departure.abort();
    }
    return this.#departure.signal;
  }

  /** Notes the caller that the gate identified. */
  identified(caller: Caller): void {
    this.caller = caller;
    this.keyed = caller.kind === 'key';
    this.tenant = caller.kind === 'key' ? caller.owner : caller.address;
    if (this.keyed) this.place?.keyed();
  }

  /**
   * Keeps a lease of the caller's limits until the work for the call is done, however long its response then waits
   * to be read.
   */
  hold(lease: Lease): void {
    this.#lease = lease;
    this.#settle();
  }

  /** Notes that the gate has admitted it. @throws DomainError CANCELED if its caller is gone: nothing ends its body. */
  admitted(): void {
    if (this.departed) throw callerLeft();
    this.times.admittedAt = performance.now();
  }

  /** Notes that its handler begins. @throws DomainError DEADLINE_EXCEEDED if the deadline has passed. */
  invoked(): void {
    const now = performance.now();
    if (now >= this.deadline) throw unreadInTime();
    this.times.invokedAt = now;
  }

  /**
   * Notes that the engine gets a job for it. Until `released` it counts against its caller's limit of decisions in
   * progress, even if the caller has left.
   */
  engaged(): void {
    this.#engaged = true;
    this.times.engineSince = performance.now();
  }

  released(): void {
    if (!this.#engaged) return;
    this.#engaged = false;
    this.times.engineUntil = performance.now();
    this.#settle();
  }

  /** Notes that the handler is done, or never ran: only the response has to leave. */
  answered(): void {
    this.#answered = true;
    this.#settle();
  }

  /** Notes that the caller is gone: work for it may stop. */
  depart(): void {
    this.departed = true;
    this.#departure?.abort();
  }

  #settle(): void {
    if (!this.#answered || this.#engaged) return;
    this.#lease?.release();
    this.#lease = undefined;
  }
}
