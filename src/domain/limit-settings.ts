/** The limits of a deployment: their defaults and how they are written in settings. */
import { isWithin, LIMIT_BOUNDS } from '../stores/key-record.ts';
import type { Rate } from './gcra.ts';
import { type Parsed, setting, type ValuesOf } from './settings.ts';

/** What one kind of caller may do; `'off'` is no limit. */
export interface Allowance {
  readonly rate: Rate | 'off';
  /** Decisions in progress at one time. */
  readonly concurrency: number | 'off';
  /** Decisions a day (UTC). */
  readonly quota: number | 'off';
}

/** Per client address, and per key where the key's own record does not say otherwise. */
export interface LimitSettings {
  readonly anonymous: Allowance;
  readonly key: Allowance;
}

const RATE = /^(?<count>\d+(?:\.\d+)?)\/(?<unit>s|m|h)(?:[\s,]+burst[\s=]*(?<burst>\d+))?$/;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/**
 * Reads a rate: `50/s`, `600/m`, `1000/h`, each optionally with `, burst 100` (by default what the rate allows in two
 * seconds), or `off`. Returns what is wrong with it as `problem`.
 */
export function parseRate(text: string): Parsed<Rate | 'off'> {
  const trimmed = text.trim();
  if (trimmed === 'off') return { value: 'off' };
  const groups = RATE.exec(trimmed)?.groups;
  const perSecond = Number(groups?.count) / (SECONDS[groups?.unit ?? ''] ?? 1);
  if (groups === undefined || !isWithin(perSecond, LIMIT_BOUNDS.perSecond)) {
    const bounds = groups === undefined ? '' : ', from one request in ten days to 1000000/s';
    return { problem: `'${text}' is not a rate such as '50/s', '50/s, burst 100', '600/m' or 'off'${bounds}` };
  }
  const burst = groups.burst === undefined ? Math.max(1, Math.ceil(2 * perSecond)) : Number(groups.burst);
  if (!isWithin(burst, LIMIT_BOUNDS.burst)) return { problem: `'${text}': burst must be from 1 to 10000000` };
  return { value: { perSecond, burst } };
}

/** Reads a count of at least 1, or `off`. */
export function parseCount(text: string): Parsed<number | 'off'> {
  const trimmed = text.trim();
  if (trimmed === 'off') return { value: 'off' };
  if (!/^[1-9]\d{0,9}$/.test(trimmed)) return { problem: `'${text}' is neither a whole number from 1 nor 'off'` };
  return { value: Number(trimmed) };
}

/**
 * The settings of limits. The defaults are far above what a trial or a small load test sends, and low enough that one
 * caller cannot fill a machine's queue alone.
 */
export const LIMIT_SETTINGS = {
  UMPIRE_RATE_ANONYMOUS: setting(
    '200/s, burst 1000',
    parseRate,
    'Requests of one address without a key: `50/s`, `600/m, burst 100` or `off`. `off` also stops limiting attempts with bad keys',
  ),
  UMPIRE_RATE_KEY: setting('1000/s, burst 5000', parseRate, 'Requests of one key, unless it has a limit of its own'),
  UMPIRE_CONCURRENCY_ANONYMOUS: setting('128', parseCount, 'Decisions of one address at one time, or `off`'),
  UMPIRE_CONCURRENCY_KEY: setting('512', parseCount, 'Decisions of one key at one time, or `off`'),
  UMPIRE_QUOTA_ANONYMOUS: setting('off', parseCount, 'Decisions of one address in a day (UTC), or `off`'),
  UMPIRE_QUOTA_KEY: setting('off', parseCount, 'Decisions of one key in a day (UTC), or `off`'),
};

/** The limits that those settings state. */
export function limitsOf(values: ValuesOf<typeof LIMIT_SETTINGS>): LimitSettings {
  return {
    anonymous: {
      rate: values.UMPIRE_RATE_ANONYMOUS,
      concurrency: values.UMPIRE_CONCURRENCY_ANONYMOUS,
      quota: values.UMPIRE_QUOTA_ANONYMOUS,
    },
    key: { rate: values.UMPIRE_RATE_KEY, concurrency: values.UMPIRE_CONCURRENCY_KEY, quota: values.UMPIRE_QUOTA_KEY },
  };
}
