/** The limits of a deployment: their defaults and how they are written in settings. */
import type { Rate } from './gcra.ts';

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

/**
 * Far above what a try-out or a small load test sends, and low enough that one caller cannot fill a machine's queue
 * alone.
 */
export const DEFAULT_LIMITS: LimitSettings = {
  anonymous: { rate: { perSecond: 200, burst: 1000 }, concurrency: 128, quota: 'off' },
  key: { rate: { perSecond: 1000, burst: 5000 }, concurrency: 512, quota: 'off' },
};

const RATE = /^(?<count>\d+(?:\.\d+)?)\/(?<unit>s|m|h)(?:[\s,]+burst[\s=]*(?<burst>\d+))?$/;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/**
 * Reads a rate: `50/s`, `600/m`, `1000/h`, each optionally with `, burst 100` (twice the count a second where it is
 * left out), or `off`. Returns what is wrong with it as `problem`.
 */
export function parseRate(text: string): { readonly value: Rate | 'off' } | { readonly problem: string } {
  const trimmed = text.trim();
  if (trimmed === 'off') return { value: 'off' };
  const groups = RATE.exec(trimmed)?.groups;
  const perSecond = Number(groups?.count) / (SECONDS[groups?.unit ?? ''] ?? 1);
  if (groups === undefined || !(perSecond > 0 && perSecond <= 1e6)) {
    return { problem: `'${text}' is not a rate such as '50/s', '50/s, burst 100', '600/m' or 'off'` };
  }
  const burst = groups.burst === undefined ? Math.max(1, Math.ceil(2 * perSecond)) : Number(groups.burst);
  if (!(burst >= 1 && burst <= 1e7)) return { problem: `'${text}': burst must be from 1 to 10000000` };
  return { value: { perSecond, burst } };
}

/** Reads a count of at least 1, or `off`. */
export function parseCount(text: string): { readonly value: number | 'off' } | { readonly problem: string } {
  const trimmed = text.trim();
  if (trimmed === 'off') return { value: 'off' };
  if (!/^[1-9]\d{0,9}$/.test(trimmed)) return { problem: `'${text}' is neither a whole number from 1 nor 'off'` };
  return { value: Number(trimmed) };
}

/**
 * Reads UMPIRE_RATE_ANONYMOUS, UMPIRE_RATE_KEY, UMPIRE_CONCURRENCY_ANONYMOUS, UMPIRE_CONCURRENCY_KEY,
 * UMPIRE_QUOTA_ANONYMOUS and UMPIRE_QUOTA_KEY; what is unset or empty has its default. `problems` names each setting
 * that is wrong.
 */
export function parseLimitSettings(env: Readonly<Record<string, string | undefined>>): {
  readonly value: LimitSettings;
  readonly problems: readonly string[];
} {
  const { read, problems } = createReader(env);
  const allowance = (kind: string, otherwise: Allowance): Allowance => ({
    rate: read(`UMPIRE_RATE_${kind}`, parseRate, otherwise.rate),
    concurrency: read(`UMPIRE_CONCURRENCY_${kind}`, parseCount, otherwise.concurrency),
    quota: read(`UMPIRE_QUOTA_${kind}`, parseCount, otherwise.quota),
  });
  const value = {
    anonymous: allowance('ANONYMOUS', DEFAULT_LIMITS.anonymous),
    key: allowance('KEY', DEFAULT_LIMITS.key),
  };
  return { value, problems };
}

/** Reads settings that may be left out; what is wrong with one is added to `problems`. */
export function createReader(env: Readonly<Record<string, string | undefined>>) {
  const problems: string[] = [];
  const read = <T>(
    name: string,
    parse: (text: string) => { readonly value: T } | { readonly problem: string },
    otherwise: T,
  ): T => {
    const text = env[name];
    if (text === undefined || text.trim() === '') return otherwise;
    const outcome = parse(text);
    if ('value' in outcome) return outcome.value;
    problems.push(`${name}: ${outcome.problem}`);
    return otherwise;
  };
  return { read, problems };
}
