/**
 * The caller's own timeout: `grpc-timeout` (gRPC) and `connect-timeout-ms` (Connect). Where it states none, the default
 * applies. A timeout is clamped, because a timer of more than 2^31 ms fires at once and a queue must not hold work for
 * hours.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { DEFAULT_TIMEOUT, MAX_TIMEOUT } from '../http/bounds.ts';

/** Milliseconds in each unit of `grpc-timeout`. */
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * The time that a call has, in milliseconds, clamped. Writes that into the header, so that the protocol's own timer
 * agrees; a header that is not valid is left for the protocol to refuse.
 */
export function takeTimeout(headers: IncomingHttpHeaders): number {
  const grpc = headers['grpc-timeout'];
  if (typeof grpc === 'string') {
    const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(grpc) ?? [];
    if (digits === undefined || unit === undefined) return DEFAULT_TIMEOUT;
    const timeout = Math.min(Number(digits) * (UNITS[unit] as number), MAX_TIMEOUT);
    headers['grpc-timeout'] = `${Math.floor(timeout)}m`;
    return timeout;
  }
  const connect = headers['connect-timeout-ms'];
  if (typeof connect === 'string') {
    if (!/^\d{1,10}$/.test(connect)) return DEFAULT_TIMEOUT;
    const timeout = Math.min(Number(connect), MAX_TIMEOUT);
    headers['connect-timeout-ms'] = String(timeout);
    return timeout;
  }
  return DEFAULT_TIMEOUT;
}
