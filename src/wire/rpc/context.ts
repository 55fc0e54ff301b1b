/** How a handler that Connect calls gets at the exchange that it answers. */
import type { IncomingHttpHeaders } from 'node:http';
import { createContextKey, createContextValues, type HandlerContext } from '@connectrpc/connect';
import { DEFAULT_TIMEOUT, MAX_TIMEOUT } from '../http/bounds.ts';
import type { Exchange } from '../http/exchange.ts';
import { toConnectError } from './fault.ts';

const EXCHANGE = createContextKey<Exchange | undefined>(undefined);

/** Context values of a call that hold its exchange. */
export const contextOf = (exchange: Exchange) => createContextValues().set(EXCHANGE, exchange);

/** The exchange of a call. */
export function exchangeOf(context: HandlerContext): Exchange {
  const exchange = context.values.get(EXCHANGE);
  if (exchange === undefined) throw new Error('a call without its exchange');
  return exchange;
}

/** Does the work of a call; what it throws becomes the protocol's error and is noted on the exchange. */
export async function noting<T>(context: HandlerContext, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toConnectError(exchangeOf(context).failed(error));
  }
}

// The caller's own timeout: `grpc-timeout` (gRPC) and `connect-timeout-ms` (Connect). Where it states none, the default
// applies. A timeout is clamped, because a timer of more than 2^31 ms fires at once and a queue must not hold work for
// hours.

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
