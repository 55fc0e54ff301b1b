/**
 * The `traceparent` header (W3C Trace Context): `<version>-<trace id>-<parent id>-<flags>`, in
 * lower-case hexadecimal digits.
 */

/** Which trace something belongs to, and which span of it. */
export interface TraceContext {
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
export function parseTraceParent(header: string | readonly string[] | undefined): TraceContext | undefined {
  if (typeof header !== 'string' || !TRACE_PARENT.test(header)) return undefined;
  if (header.length > LENGTH && header.startsWith('00')) return undefined;
  const flags = Number.parseInt(header.slice(53, LENGTH), 16);
  return { traceId: header.slice(3, 35), spanId: header.slice(36, 52), sampled: (flags & 1) === 1 };
}
