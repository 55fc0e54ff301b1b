/**
 * Every way in which a request can fail, in one table: the reason, its code over gRPC and Connect, its HTTP status and
 * its `error.type` over REST. A reason of the proto without a row does not compile.
 */
import type { ErrorReason as ErrorReasonNumber } from '../../gen/umpire/v1/error_reason_pb.ts';

/** The names of `umpire.v1.ErrorReason` without their prefix, as `google.rpc.ErrorInfo` carries them. */
export type ErrorReason = Exclude<keyof typeof ErrorReasonNumber, 'UNSPECIFIED'>;

/** `error.type` of the contract's envelope. */
export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'rate_limit_error'
  | 'model_error'
  | 'server_error';

/** The names of gRPC's status codes that Umpire uses. */
export type StatusName =
  | 'CANCELLED'
  | 'INVALID_ARGUMENT'
  | 'DEADLINE_EXCEEDED'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'UNIMPLEMENTED'
  | 'INTERNAL'
  | 'UNAVAILABLE'
  | 'DATA_LOSS'
  | 'UNAUTHENTICATED';

/** One row: what a reason looks like in each protocol. */
export interface ErrorRow {
  readonly status: StatusName;
  readonly http: number;
  readonly type: ErrorType;
}

const row = (status: StatusName, http: number, type: ErrorType): ErrorRow => ({ status, http, type });
const INVALID = row('INVALID_ARGUMENT', 400, 'invalid_request_error');
const BUSY = row('UNAVAILABLE', 503, 'server_error');
const LIMITED = row('RESOURCE_EXHAUSTED', 429, 'rate_limit_error');
const transport = (http: number): ErrorRow => row('INVALID_ARGUMENT', http, 'invalid_request_error');

/** The table. Its golden copy under `test/golden` is part of the frozen contract. */
export const ERROR_TABLE: Readonly<Record<ErrorReason, ErrorRow>> = {
  INVALID_JSON: INVALID,
  INVALID_MESSAGE: INVALID,
  UNKNOWN_FIELD: INVALID,
  DUPLICATE_FIELD: INVALID,
  MISSING_FIELD: INVALID,
  INVALID_TYPE: INVALID,
  INVALID_VALUE: INVALID,
  CHOICES_OR_CATALOG: INVALID,
  INVALID_CHOICES: INVALID,
  TOO_MANY_CHOICES: INVALID,
  INPUT_TOKENS_EXCEEDED: INVALID,
  CANDIDATE_TOKENS_EXCEEDED: INVALID,
  UNKNOWN_MODEL: INVALID,
  MODEL_DISABLED: row('FAILED_PRECONDITION', 400, 'invalid_request_error'),
  UNKNOWN_CATALOG: INVALID,
  CATALOG_MODEL_MISMATCH: INVALID,
  INVALID_CATALOG_ID: INVALID,
  AUTHENTICATION_REQUIRED: row('UNAUTHENTICATED', 401, 'authentication_error'),
  MODEL_NOT_FOUND: row('NOT_FOUND', 404, 'invalid_request_error'),
  CATALOG_NOT_FOUND: row('NOT_FOUND', 404, 'invalid_request_error'),
  CATALOG_ALREADY_EXISTS: row('ALREADY_EXISTS', 409, 'invalid_request_error'),
  RATE_LIMIT_EXCEEDED: LIMITED,
  CONCURRENCY_LIMIT_EXCEEDED: LIMITED,
  QUOTA_EXCEEDED: LIMITED,
  MODEL_UNAVAILABLE: row('UNAVAILABLE', 503, 'model_error'),
  OVERLOADED: BUSY,
  DEADLINE_EXCEEDED: row('DEADLINE_EXCEEDED', 503, 'server_error'),
  STORE_UNAVAILABLE: BUSY,
  STORE_WRITE_UNCONFIRMED: BUSY,
  NOT_READY: BUSY,
  DRAINING: BUSY,
  INTERNAL: row('INTERNAL', 500, 'server_error'),
  STORAGE_CORRUPT: row('DATA_LOSS', 500, 'server_error'),
  UNIMPLEMENTED: row('UNIMPLEMENTED', 501, 'server_error'),
  // 499 is never sent: the caller is gone. The log shows it.
  CANCELED: row('CANCELLED', 499, 'invalid_request_error'),
  ROUTE_NOT_FOUND: row('UNIMPLEMENTED', 404, 'invalid_request_error'),
  METHOD_NOT_ALLOWED: transport(405),
  REQUEST_TIMEOUT: transport(408),
  BODY_TOO_LARGE: transport(413),
  UNSUPPORTED_MEDIA_TYPE: transport(415),
  // gRPC's own rule for a compression that a server does not have.
  UNSUPPORTED_ENCODING: row('UNIMPLEMENTED', 415, 'invalid_request_error'),
  EXPECTATION_FAILED: transport(417),
  HEADERS_TOO_LARGE: transport(431),
  MALFORMED_REQUEST: transport(400),
  SERVICE_NOT_FOUND: row('NOT_FOUND', 404, 'invalid_request_error'),
};

/** The longest wait, in seconds, whose milliseconds fit the 32 bits in which gRPC's clients read them: 24 days. */
const LONGEST_WAIT = 2_147_483;

/** What a DomainError may carry besides its reason and message. */
export interface DomainErrorDetails {
  /** The top-level request field that is at fault; null or absent if none is. */
  readonly param?: string | null;
  /** The least time to wait before a retry, in seconds. It is sent as a whole number, at most `LONGEST_WAIT`. */
  readonly retryAfter?: number | undefined;
  /** The underlying error: logged, never sent. */
  readonly cause?: unknown;
}

/** The whole seconds of a wait, whatever an estimate or a record made of it: no wait may break an answer. */
function sane(seconds: number): number {
  return Number.isNaN(seconds) ? 1 : Math.min(LONGEST_WAIT, Math.max(0, Math.ceil(seconds)));
}

/**
 * A failure that a caller may see: thrown by domain and service code, turned into each protocol's error in one place.
 */
export class DomainError extends Error {
  readonly reason: ErrorReason;
  readonly param: string | null;
  readonly retryAfter: number | undefined;

  /** `message` is logged and is sent to the caller: it never holds a key, an input or a choice of someone else's. */
  constructor(reason: ErrorReason, message: string, details: DomainErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'DomainError';
    this.reason = reason;
    this.param = details.param ?? null;
    this.retryAfter = details.retryAfter === undefined ? undefined : sane(details.retryAfter);
  }

  /** `error.code` of the envelope. */
  get code(): string {
    return this.reason.toLowerCase();
  }
}
