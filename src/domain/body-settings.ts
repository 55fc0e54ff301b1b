/** The settings that limit the bytes of request bodies. */
import type { BodyRates } from './body-limits.ts';
import { parseRate } from './limit-settings.ts';
import { setting, type ValuesOf } from './settings.ts';

/**
 * Rates in MiB: 1 MiB takes this process some milliseconds, so that all callers keep it busy a fifth of the time.
 */
export const BODY_SETTINGS = {
  UMPIRE_BODIES_ANONYMOUS: setting(
    '4/s, burst 32',
    parseRate,
    'MiB of request bodies of one address without a key, or `off`',
  ),
  UMPIRE_BODIES_KEY: setting('16/s, burst 64', parseRate, 'MiB of request bodies of one key, or `off`'),
  UMPIRE_BODIES_ALL: setting(
    '32/s, burst 128',
    parseRate,
    'MiB of request bodies of all callers together, of which those without a key get at most four fifths, or `off`',
  ),
};

/** The rates that those settings state. */
export function bodyRatesOf(values: ValuesOf<typeof BODY_SETTINGS>): BodyRates {
  return {
    anonymous: values.UMPIRE_BODIES_ANONYMOUS,
    key: values.UMPIRE_BODIES_KEY,
    all: values.UMPIRE_BODIES_ALL,
  };
}
