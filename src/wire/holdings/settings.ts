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
  /** New connections of one address. */
  readonly connectionRate: Rate | 'off';
  /** Requests that have begun and whose response has not left. */
  readonly requests: Bound;
  /** Requests of one address, whatever they ask for, before anything else is looked at. */
  readonly requestRate: Rate | 'off';
  /** Those requests that no other limit counts. */
  readonly lookupRate: Rate | 'off';
  /** Requests that one address takes back, or sends beyond its rate. */
  readonly resetRate: Rate | 'off';
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
/** The most that a bound may be. */
const MOST = 1_000_000;

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
  UMPIRE_CONNECTION_RATE: setting('100/s, burst 1000', parseRate, 'New connections from one address, or `off`'),
  UMPIRE_MAX_REQUESTS: setting(
    '8192',
    whole(1, MOST),
    'Requests of any kind in progress, the last eighth likewise. Beyond it, a new request takes the place of one that is arriving, not read or a watch, of the address with most, or gets 503',
  ),
  UMPIRE_REQUESTS_PER_ADDRESS: setting('1024', whole(1, MOST), 'The same for one address, with 429 in place of 503'),
  UMPIRE_REQUEST_RATE: setting(
    '5000/s, burst 20000',
    parseRate,
    'Requests of any kind from one address, with a key or without, or `off`',
  ),
  UMPIRE_LOOKUP_RATE: setting(
    '100/s, burst 400',
    parseRate,
    'Requests from one address that no other limit counts (models, pages, unknown paths, missing keys, gRPC health, messages of reflection), or `off`',
  ),
  UMPIRE_RESET_RATE: setting(
    '1000/s, burst 5000',
    parseRate,
    'Requests that one address cancels, or sends beyond its request rate. Above this, the address is not served for 5 seconds. Or `off`',
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
  UMPIRE_MAX_WATCHES: 'UMPIRE_MAX_REQUESTS counts watches, too',
  UMPIRE_WATCHES_PER_ADDRESS: 'UMPIRE_REQUESTS_PER_ADDRESS counts watches, too',
};

/** The bounds that those settings state. */
export function holdingsOf(values: ValuesOf<typeof HOLDING_SETTINGS>): HoldingSettings {
  return {
    connections: { perAddress: values.UMPIRE_CONNECTIONS_PER_ADDRESS, total: values.UMPIRE_MAX_CONNECTIONS },
    connectionRate: values.UMPIRE_CONNECTION_RATE,
    requests: { perAddress: values.UMPIRE_REQUESTS_PER_ADDRESS, total: values.UMPIRE_MAX_REQUESTS },
    requestRate: values.UMPIRE_REQUEST_RATE,
    lookupRate: values.UMPIRE_LOOKUP_RATE,
    resetRate: values.UMPIRE_RESET_RATE,
    watchTime: values.UMPIRE_WATCH_TIME,
    unread: { perAddress: values.UMPIRE_UNREAD_PER_ADDRESS, total: values.UMPIRE_MAX_UNREAD },
    writeTimeout: values.UMPIRE_WRITE_TIMEOUT,
  };
}
