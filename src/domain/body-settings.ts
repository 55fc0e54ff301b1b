/** The limits of request bodies in bytes: their defaults and how they are written in settings. */
import type { BodyRates } from './body-limits.ts';
import { createReader, parseRate } from './limit-settings.ts';

/** Their rows of the table of settings. */
export const BODY_SETTINGS = [
  {
    name: 'UMPIRE_BODIES_ANONYMOUS',
    default: '4/s, burst 32',
    meaning: 'MiB of request bodies of one address without a key, or `off`',
  },
  { name: 'UMPIRE_BODIES_KEY', default: '16/s, burst 64', meaning: 'MiB of request bodies of one key, or `off`' },
  {
    name: 'UMPIRE_BODIES_ALL',
    default: '32/s, burst 128',
    meaning: 'MiB of request bodies of all callers, of which those without a key get four fifths; or `off`',
  },
];

/**
 * MiB of request bodies: 1 MiB takes this process some milliseconds, so that all together keep it busy for a fifth of
 * its time.
 */
export const DEFAULT_BODY_RATES: BodyRates = {
  anonymous: { perSecond: 4, burst: 32 },
  key: { perSecond: 16, burst: 64 },
  all: { perSecond: 32, burst: 128 },
};

/**
 * Reads UMPIRE_BODIES_ANONYMOUS, UMPIRE_BODIES_KEY and UMPIRE_BODIES_ALL, rates in MiB, as `parseLimitSettings` does.
 */
export function parseBodyRates(env: Readonly<Record<string, string | undefined>>): {
  readonly value: BodyRates;
  readonly problems: readonly string[];
} {
  const { read, problems } = createReader(env);
  const value = {
    anonymous: read('UMPIRE_BODIES_ANONYMOUS', parseRate, DEFAULT_BODY_RATES.anonymous),
    key: read('UMPIRE_BODIES_KEY', parseRate, DEFAULT_BODY_RATES.key),
    all: read('UMPIRE_BODIES_ALL', parseRate, DEFAULT_BODY_RATES.all),
  };
  return { value, problems };
}
