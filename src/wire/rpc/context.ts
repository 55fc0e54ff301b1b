/** How a handler that Connect calls gets at the exchange that it answers. */
import { createContextKey, createContextValues, type HandlerContext } from '@connectrpc/connect';
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
