/** The `traceparent` header (W3C Trace Context): `<version>-<trace id>-<parent id>-<flags>`, in lower-case hexadecimal digits. */

/** Which trace something belongs to, and which span of it. */
export interface TraceContext {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all zero. */
  readonly spanId: string;
  /** Whether whoever made the span records the trace. */
  readonly sampled: boolean;
}

const TRACE_PARENT =
  /^(?<version>[\da-f]{2})-(?<traceId>[\da-f]{32})-(?<spanId>[\da-f]{16})-(?<flags>[\da-f]{2})(?<rest>-.*)?$/;
const ZEROS = /^0+$/;

/**
 * The caller's context, or undefined where the header is missing, malformed or doubled: such a request begins a trace of its own. A version
 * that is not known yet may carry more fields behind the four; version `ff` is none.
 */
export function parseTraceParent(header: string | readonly string[] | undefined): TraceContext | undefined {
  if (typeof header !== 'string') return undefined;
  const groups = TRACE_PARENT.exec(header)?.groups;
  if (groups === undefined) return undefined;
  const { version, traceId = '', spanId = '', flags = '', rest } = groups;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
