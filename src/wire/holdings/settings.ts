/** What one client address, and all together, may hold of the process: defaults that suit a public address, and how they are written in settings. */
import type { Rate } from '../../domain/gcra.ts';
import { parseRate } from '../../domain/limit-settings.ts';

/** Bounds of the wire. `perAddress` counts IPv6 by its /64; behind a trusted proxy it is the address that the proxy names. */
export interface HoldingSettings {
  readonly connections: Bound;
  /** New connections of one address. */
  readonly connectionRate: Rate | 'off';
  /** Requests that have begun and whose response has not left. */
  readonly requests: Bound;
  /** Requests of one address, whatever they ask for, before anything else is looked at. */
  readonly requestRate: Rate | 'off';
  /** Those of them that no other limit counts: models, gRPC health and reflection. */
  readonly lookupRate: Rate | 'off';
  /** Requests that one address takes back, or sends beyond its rate. */
  readonly resetRate: Rate | 'off';
  /** Streams of `Health.Watch`. */
  readonly watches: Bound;
  /** Milliseconds after which a watch is ended, give or take a tenth. */
  readonly watchTime: number;
  /** Bytes of responses that wait to be read. */
  readonly unread: Bound;
  /** Milliseconds without progress after which a response that nobody reads is given up; in ten times that it is in any case. */
  readonly writeTimeout: number;
}

/** A bound for one address and one for all. */
export interface Bound {
  readonly perAddress: number;
  readonly total: number;
}

/** How the settings are documented, in the order of the README's table. */
export const HOLDING_SETTINGS: readonly {
  readonly name: string;
  readonly default: string;
  readonly meaning: string;
}[] = [
  {
    name: 'UMPIRE_MAX_CONNECTIONS',
    default: '2048',
    meaning:
      'Connections at one time. Where there is room for no more, the one that has been idle longest is closed; a new one only if none is idle',
  },
  {
    name: 'UMPIRE_CONNECTIONS_PER_ADDRESS',
    default: '512',
    meaning: 'The same for one address; connections of trusted proxies are not counted by address',
  },
  {
    name: 'UMPIRE_CONNECTION_RATE',
    default: '100/s, burst 1000',
    meaning: 'New connections of one address, or `off`',
  },
  {
    name: 'UMPIRE_MAX_REQUESTS',
    default: '8192',
    meaning:
      'Requests of any kind in progress. Any more take the place of the one that has been arriving longest, or get 503',
  },
  {
    name: 'UMPIRE_REQUESTS_PER_ADDRESS',
    default: '1024',
    meaning: 'The same for one address, with 429',
  },
  {
    name: 'UMPIRE_REQUEST_RATE',
    default: '5000/s, burst 20000',
    meaning: 'Requests of any kind from one address, with a key or without, or `off`',
  },
  {
    name: 'UMPIRE_LOOKUP_RATE',
    default: '100/s, burst 400',
    meaning: 'Those of them that no other limit counts, models, gRPC health and reflection, or `off`',
  },
  {
    name: 'UMPIRE_RESET_RATE',
    default: '1000/s, burst 5000',
    meaning:
      'Requests that one address takes back, or sends beyond its rate; past it the address is not served for 5 seconds. Or `off`',
  },
  {
    name: 'UMPIRE_MAX_WATCHES',
    default: '1024',
    meaning: 'Streams of gRPC `Health.Watch` at one time. Where there is room for no more, the oldest ends',
  },
  {
    name: 'UMPIRE_WATCHES_PER_ADDRESS',
    default: '32',
    meaning: 'The same for one address',
  },
  {
    name: 'UMPIRE_WATCH_TIME',
    default: '600',
    meaning: 'Seconds after which such a stream ends, give or take a tenth; its caller opens another',
  },
  {
    name: 'UMPIRE_MAX_UNREAD',
    default: '256',
    meaning: 'MiB of responses that wait to be read. Past it those that have waited longest are given up',
  },
  {
    name: 'UMPIRE_UNREAD_PER_ADDRESS',
    default: '32',
    meaning: 'The same for one address, which gets 429 meanwhile',
  },
  {
    name: 'UMPIRE_WRITE_TIMEOUT',
    default: '30',
    meaning:
      'Seconds without progress after which a response that nobody reads is given up; ten times that in any case',
  },
];

const MIB = 1024 * 1024;

/** Settings of counts: name, default and largest value. */
const COUNTS = {
  UMPIRE_MAX_CONNECTIONS: [2048, 1_000_000],
  UMPIRE_CONNECTIONS_PER_ADDRESS: [512, 1_000_000],
  UMPIRE_MAX_REQUESTS: [8192, 1_000_000],
  UMPIRE_REQUESTS_PER_ADDRESS: [1024, 1_000_000],
  UMPIRE_MAX_WATCHES: [1024, 1_000_000],
  UMPIRE_WATCHES_PER_ADDRESS: [32, 1_000_000],
  UMPIRE_WATCH_TIME: [600, 86_400],
  UMPIRE_MAX_UNREAD: [256, 1_000_000],
  UMPIRE_UNREAD_PER_ADDRESS: [32, 1_000_000],
  UMPIRE_WRITE_TIMEOUT: [30, 3600],
} as const satisfies Readonly<Record<string, readonly [otherwise: number, most: number]>>;

const RATES = {
  UMPIRE_CONNECTION_RATE: { perSecond: 100, burst: 1000 },
  UMPIRE_REQUEST_RATE: { perSecond: 5000, burst: 20_000 },
  UMPIRE_LOOKUP_RATE: { perSecond: 100, burst: 400 },
  UMPIRE_RESET_RATE: { perSecond: 1000, burst: 5000 },
} as const satisfies Readonly<Record<string, Rate>>;

/** Reads the settings of this folder; what is unset or empty has its default. `problems` names each setting that is wrong. */
export function parseHoldingSettings(env: Readonly<Record<string, string | undefined>>): {
  readonly value: HoldingSettings;
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const text = (name: string): string | undefined => env[name]?.trim() || undefined;
  const count = (name: keyof typeof COUNTS): number => {
    const [otherwise, most] = COUNTS[name];
    const written = text(name);
    if (written === undefined) return otherwise;
    const number = /^\d{1,9}$/.test(written) ? Number(written) : Number.NaN;
    if (number >= 1 && number <= most) return number;
    problems.push(`${name}: must be a whole number from 1 to ${most}, not '${written}'`);
    return otherwise;
  };
  const rate = (name: keyof typeof RATES): Rate | 'off' => {
    const written = text(name);
    if (written === undefined) return RATES[name];
    const outcome = parseRate(written);
    if ('value' in outcome) return outcome.value;
    problems.push(`${name}: ${outcome.problem}`);
    return RATES[name];
  };
  const value: HoldingSettings = {
    connections: { perAddress: count('UMPIRE_CONNECTIONS_PER_ADDRESS'), total: count('UMPIRE_MAX_CONNECTIONS') },
    connectionRate: rate('UMPIRE_CONNECTION_RATE'),
    requests: { perAddress: count('UMPIRE_REQUESTS_PER_ADDRESS'), total: count('UMPIRE_MAX_REQUESTS') },
    requestRate: rate('UMPIRE_REQUEST_RATE'),
    lookupRate: rate('UMPIRE_LOOKUP_RATE'),
    resetRate: rate('UMPIRE_RESET_RATE'),
    watches: { perAddress: count('UMPIRE_WATCHES_PER_ADDRESS'), total: count('UMPIRE_MAX_WATCHES') },
    watchTime: count('UMPIRE_WATCH_TIME') * 1000,
    unread: {
      perAddress: count('UMPIRE_UNREAD_PER_ADDRESS') * MIB,
      total: count('UMPIRE_MAX_UNREAD') * MIB,
    },
    writeTimeout: count('UMPIRE_WRITE_TIMEOUT') * 1000,
  };
  return { value, problems };
}
