/**
 * What one client address, and all together, may hold of the process: defaults that suit a public address, and how they
 * are written in settings.
 */
import type { Rate } from '../../domain/gcra.ts';
import { parseRate } from '../../domain/limit-settings.ts';
import { setting, type ValuesOf, whole } from '../../domain/settings.ts';

/**
 * Bounds of the wire. `perAddress` counts IPv6 by its /64; behind a trusted proxy it is the address that
 * the proxy names.
 */
export interface HoldingSettings {
  readonly connections: Bound;
  /** Requests that have begun and whose response has not left. */
  readonly requests: Bound;
  /** What one address may do, in requests: see `COSTS`. */
  readonly requestRate: Rate | 'off';
  /** Milliseconds after which a watch is ended, give or take a tenth. */
  readonly watchTime: number;
  /** Bytes of responses that wait to be read. */
  readonly unread: Bound;
  /**
   * Milliseconds without progress after which a response that nobody reads is given up; after ten times that it is
   * given up in any case.
   */
  readonly writeTimeout: number;
}

/** A bound for one address and one for all. */
export interface Bound {
  readonly perAddress: number;
  readonly total: number;
}

const MIB = 1024 * 1024;
/** The least burst of an address: a look-up with its request. */
const LEAST_BURST = 50;
/** The most that a bound may be. */
const MOST = 1_000_000;

/** Reads a rate in whose burst there is room for the dearest thing that is counted. */
function parseRequestRate(text: string): ReturnType<typeof parseRate> {
  const read = parseRate(text);
  if (!('value' in read) || read.value === 'off' || read.value.burst >= LEAST_BURST) return read;
  return { problem: `'${text}': burst must be at least ${LEAST_BURST}, which is what a look-up counts` };
}

/** The settings of these bounds, in the order of docs/settings.md. */
export const HOLDING_SETTINGS = {
  UMPIRE_MAX_CONNECTIONS: setting(
    '2048',
    whole(1, MOST),
    'Connections at one time, the last eighth for addresses with few and for keyed callers. Beyond it, the address with most loses one that is idle or does not move, or the new one is closed',
  ),
  UMPIRE_CONNECTIONS_PER_ADDRESS: setting(
    '512',
    whole(1, MOST),
    'The same for one address. Connections of trusted proxies are not counted by address',
  ),
  UMPIRE_MAX_REQUESTS: setting(
    '8192',
    whole(1, MOST),
    'Requests of any kind in progress, the last eighth likewise. Beyond it, a new request takes the place of one that is arriving, not read or a watch, of the address with most, or gets 503',
  ),
  UMPIRE_REQUESTS_PER_ADDRESS: setting('1024', whole(1, MOST), 'The same for one address, with 429 in place of 503'),
  UMPIRE_REQUEST_RATE: setting(
    '5000/s, burst 20000',
    parseRequestRate,
    'Requests of any kind from one address, with a key or without. A new connection counts as 20 of them, a cancelled request as 5, one that no other limit counts (models, pages, unknown paths, missing keys, gRPC health, messages of reflection) as 50, a refused one as half. An address that is beyond this by a quarter of the burst is not served for 5 seconds. Or `off`',
  ),
  UMPIRE_WATCH_TIME: setting(
    '600',
    whole(1, 86_400, 1000),
    'Seconds after which a stream of gRPC `Health.Watch` is ended, give or take a tenth; its caller opens another',
  ),
  UMPIRE_MAX_UNREAD: setting(
    '256',
    whole(1, MOST, MIB),
    'MiB of responses that wait to be read. Beyond it, those that have waited longest are dropped',
  ),
  UMPIRE_UNREAD_PER_ADDRESS: setting(
    '32',
    whole(1, MOST, MIB),
    'The same for one address, which gets 429 while it is above',
  ),
  UMPIRE_WRITE_TIMEOUT: setting(
    '30',
    whole(1, 3600, 1000),
    'Seconds without progress after which a response that nobody reads is dropped. A response is dropped after ten times as long in any case',
  ),
};

/** Settings that there were, with what replaces them. */
export const REPLACED_SETTINGS: Readonly<Record<string, string>> = {
  UMPIRE_CONNECTION_RATE: 'UMPIRE_REQUEST_RATE counts a new connection as 20 requests',
  UMPIRE_LOOKUP_RATE: 'UMPIRE_REQUEST_RATE counts a request that no other limit counts as 50',
  UMPIRE_RESET_RATE: 'UMPIRE_REQUEST_RATE counts a cancelled request as 5, and a refused one as half',
  UMPIRE_MAX_WATCHES: 'UMPIRE_MAX_REQUESTS counts watches, too',
  UMPIRE_WATCHES_PER_ADDRESS: 'UMPIRE_REQUESTS_PER_ADDRESS counts watches, too',
};

/** The bounds that those settings state. */
export function holdingsOf(values: ValuesOf<typeof HOLDING_SETTINGS>): HoldingSettings {
  return {
    connections: { perAddress: values.UMPIRE_CONNECTIONS_PER_ADDRESS, total: values.UMPIRE_MAX_CONNECTIONS },
    requests: { perAddress: values.UMPIRE_REQUESTS_PER_ADDRESS, total: values.UMPIRE_MAX_REQUESTS },
    requestRate: values.UMPIRE_REQUEST_RATE,
    watchTime: values.UMPIRE_WATCH_TIME,
    unread: { perAddress: values.UMPIRE_UNREAD_PER_ADDRESS, total: values.UMPIRE_MAX_UNREAD },
    writeTimeout: values.UMPIRE_WRITE_TIMEOUT,
  };
}
