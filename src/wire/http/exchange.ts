/**
 * One HTTP request and its response, from the first header to the log line. It is received, admitted, invoked, answered
 * and ended, and may fail or be given up on the way; its record says what happened, and nobody else writes it.
 */
import type { DescMessage, Message, MessageInitShape } from '@bufbuild/protobuf';
import { Call } from '../../domain/call.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Origin } from '../../domain/gate.ts';
import type { Procedure } from '../../service/procedure.ts';
import { LARGE } from './body.ts';
import { DEFAULT_TIMEOUT, MAX_BODY_BYTES } from './bounds.ts';
import type { HttpRequest, HttpResponse } from './messages.ts';

/** What an exchange speaks. gRPC-Web, which Connect answers, counts as Connect. */
export type Protocol = 'rest' | 'grpc' | 'connect';

/** What happened to an exchange so far, beside the times of its call. */
export interface ExchangeRecord {
  readonly protocol: Protocol;
  /** The route's template or the RPC's path; bounded in number, so that it can label metrics. */
  readonly route: string;
  /** When it was over, on the clock of `performance.now()`; 0 until then. */
  readonly endedAt: number;
  /** Why it failed, if it did. Its cause is for the log alone. */
  readonly fault?: DomainError;
  /** Why the wire gave it up, if it did. */
  readonly givenUp?: 'unread' | 'unfinished' | 'displaced';
  /** The span as which it was recorded, or else the caller's; known when it is over. */
  readonly trace?: TraceContext | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Metrics, traces or the log: sees each exchange once, when it is over. Never throws. */
export type Observer = (exchange: Exchange) => void;

/** An exchange: the `Call` that handlers see, with the HTTP request and its response. */
export class Exchange extends Call {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly #record: Writable<ExchangeRecord> = { protocol: 'rest', route: 'unmatched', endedAt: 0 };

  constructor(request: HttpRequest, response: HttpResponse) {
    super(DEFAULT_TIMEOUT);
    this.request = request;
    this.response = response;
  }

  /** Where it comes from, as the request says. */
  get origin(): Origin {
    const { headers, socket } = this.request;
    return {
      peer: socket?.remoteAddress,
      forwarded: headers['x-forwarded-for'],
      authorization: headers.authorization,
    };
  }

  get record(): ExchangeRecord {
    return this.#record;
  }

  /** Notes what its head says. `timeout`: milliseconds from its beginning to the deadline. */
  received({ timeout, ...found }: { protocol?: Protocol; route?: string; timeout?: number }): void {
    Object.assign(this.#record, found);
    if (timeout !== undefined) this.deadline = this.startedAt + timeout;
  }

  /**
   * Runs a procedure's handler on a request that has passed its rules. @throws what the handler throws, or DomainError
   * DEADLINE_EXCEEDED.
   */
  async invoke(procedure: Procedure, request: Message): Promise<MessageInitShape<DescMessage>> {
    const { place } = this;
    const { sizeOf } = procedure;
    if (sizeOf !== undefined) {
      // What is stored can be large, and its size is unknown until it has been read. So room for the largest response
      // is set aside first: an address has only as many reads at a time as its bound of unread bytes has room for;
      // others wait. The size that is found then replaces what was set aside, so that the wait behind small responses
      // is short.
      const room = place?.reserve(MAX_BODY_BYTES);
      if (room !== undefined) await room;
      await place?.turn();
    }
    try {
      this.invoked();
      const response = await procedure.handle(request, this);
      if (sizeOf !== undefined) {
        const size = sizeOf(response);
        place?.settle(size);
        // To write it takes as long as to read it.
        if (size > LARGE) await place?.turn();
      }
      return response;
    } finally {
      // A call that failed has no such response. After the `settle` above, this does nothing.
      if (sizeOf !== undefined) place?.settle(0);
      this.answered();
    }
  }

  /**
   * Notes the error that ended the work for it. Returns what the caller may see of that: an error that is not a
   * DomainError becomes `internal`.
   */
  failed(error: unknown): DomainError {
    const fault =
      error instanceof DomainError
        ? error
        : new DomainError('INTERNAL', 'an unexpected fault; the log has it under this request id', { cause: error });
    this.#record.fault = fault;
    this.answered();
    return fault;
  }

  /** Notes that the wire ends it before its response has left. */
  givenUp(why: NonNullable<ExchangeRecord['givenUp']>): void {
    this.#record.givenUp = why;
  }

  /** Notes that the response is closed, whether or not it was written. */
  ended(): void {
    if (!this.response.writableEnded) {
      this.#record.fault ??= new DomainError('CANCELED', 'the caller left before the answer was written');
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
}

/** Answers the requests of a protocol. Each is received, admitted by the gate, read, invoked and answered. */
export interface ProtocolHandler {
  /** Answers the request. Never rejects. */
  handle(exchange: Exchange, path: string): Promise<void>;
  /** Answers a request that is refused before it is received. `closing`: its connection takes no more. */
  refuse(exchange: Exchange, fault: DomainError, closing: boolean): void;
}

// The `traceparent` header (W3C Trace Context): `<version>-<trace id>-<parent id>-<flags>`, in
// lower-case hexadecimal digits.

/** Which trace something belongs to, and which span of it. */
interface TraceContext {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all zero. */
  readonly spanId: string;
  /** Whether whoever made the span records the trace. */
  readonly sampled: boolean;
}

const TRACE_PARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(-|$)/;
/** Characters of the four fields. */
const LENGTH = 55;

/**
 * The caller's context, or undefined where the header is missing, malformed or given twice: such a request begins a
 * trace of its own. A version that is not known yet may have more fields after the four; `ff` is not a version.
 */
function parseTraceParent(header: string | readonly string[] | undefined): TraceContext | undefined {
  if (typeof header !== 'string' || !TRACE_PARENT.test(header)) return undefined;
  if (header.length > LENGTH && header.startsWith('00')) return undefined;
  const flags = Number.parseInt(header.slice(53, LENGTH), 16);
  return { traceId: header.slice(3, 35), spanId: header.slice(36, 52), sampled: (flags & 1) === 1 };
}
