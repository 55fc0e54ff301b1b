/** The seam at which metrics and traces see what the service did. */
import type { Exchange } from './http/exchange.ts';

/** Sees each exchange once, when it is over and before its log line is written. Never throws. */
export type Observer = (exchange: Exchange) => void;
