/** Converts a key's record to text fields, which are the same in every store, and back. */
import type { KeyLimits, KeyList, KeyRecord, UnreadableKey } from './key-store.ts';
import { StoreCorrupt } from './stores.ts';

/**
 * What limits may be, in settings and in records: beyond it the arithmetic of rates loses its digits, and waits become
 * longer than the protocols can say. The slowest rate is one request in ten days.
 */
export const LIMIT_BOUNDS = {
  perSecond: { least: 1 / 864_000, most: 1e6 },
  burst: { least: 1, most: 1e7 },
  count: { least: 1, most: 9_999_999_999 },
} as const;

/** The last time that a `Date` can hold, milliseconds since the epoch. */
const LAST_TIME = 8.64e15;

/** Characters that a key's label may have. */
export const MAX_LABEL = 100;

/**
 * What is stored of a key beside its hash and its times, `ends_at` and `last_used_at`, which are milliseconds since the
 * epoch and absent or null while there is none. `limits` is JSON; `label` and `ended_by` are empty for none, and keys
 * that were written before there were any lack them.
 */
export function toKeyFields(record: KeyRecord) {
  return {
    key_id: record.keyId,
    owner: record.owner,
    limits: JSON.stringify(record.limits),
    created_at: record.createdAt,
    label: record.label ?? '',
    ended_by: record.endedBy ?? '',
  };
}

/** The record that the fields hold. Throws StoreCorrupt. */
export function fromKeyFields(hash: string, fields: Readonly<Record<string, unknown>>): KeyRecord {
  const { key_id: keyId, owner, limits: json, created_at: createdAt, ends_at: end, last_used_at: lastUse } = fields;
  const limits = typeof json === 'string' ? readLimits(json) : undefined;
  const [endsAt, lastUsedAt] = [timeFrom(end), timeFrom(lastUse)];
  const { label, ended_by: endedBy } = fields;
  const sound = typeof keyId === 'string' && typeof owner === 'string' && owner !== '' && typeof createdAt === 'string';
  if (!sound || limits === undefined || !isTime(endsAt) || !isTime(lastUsedAt)) {
    throw new StoreCorrupt(`the record of key ${nameOfKey(hash, fields)} is not readable`);
  }
  return {
    keyId,
    hash,
    owner,
    limits,
    ...(typeof label === 'string' && label !== '' ? { label } : {}),
    createdAt,
    ...(endsAt === undefined ? {} : { endsAt }),
    ...(endedBy === 'rotation' || endedBy === 'revocation' ? { endedBy } : {}),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt }),
  };
}

/** Whether a text may be a key's label: one line that a terminal can show. */
export function isLabel(text: string): boolean {
  return text.length >= 1 && text.length <= MAX_LABEL && !/\p{C}/u.test(text);
}

/** What names a record that may be broken: its key's id, or else its hash. */
function nameOfKey(hash: string, { key_id: keyId }: Readonly<Record<string, unknown>>): string {
  return typeof keyId === 'string' && keyId !== '' ? keyId : `with hash ${hash}`;
}

function timeFrom(value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : Number(value);
}

function isTime(value: number | undefined): boolean {
  return value === undefined || Math.abs(value) <= LAST_TIME;
}

/** The limits; undefined if the text is not a `KeyLimits`: a limit that cannot be read must not become no limit. */
function readLimits(json: string): KeyLimits | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { rate, concurrency, quota } = value as Record<string, unknown>;
  if (!isRate(rate) || !isCount(concurrency) || !isCount(quota)) return undefined;
  return {
    ...(rate === undefined ? {} : { rate }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(quota === undefined ? {} : { quota }),
  };
}

function isRate(value: unknown): value is KeyLimits['rate'] {
  if (value === undefined || value === 'off') return true;
  if (typeof value !== 'object' || value === null) return false;
  const { perSecond, burst } = value as Record<string, unknown>;
  return isWithin(perSecond, LIMIT_BOUNDS.perSecond) && isWithin(burst, LIMIT_BOUNDS.burst);
}

function isCount(value: unknown): value is number | 'off' | undefined {
  return value === undefined || value === 'off' || isWithin(value, LIMIT_BOUNDS.count);
}

/** Whether a value is a number within these bounds. */
export function isWithin(value: unknown, { least, most }: { readonly least: number; readonly most: number }): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}

/** The list of keys whose fields these are, by hash; undefined for fields that could not be read at all. */
export function keyListOf(
  found: Iterable<readonly [hash: string, fields: Readonly<Record<string, unknown>> | undefined]>,
): KeyList {
  const records: KeyRecord[] = [];
  const unreadable: UnreadableKey[] = [];
  for (const [hash, fields = {}] of found) {
    try {
      records.push(fromKeyFields(hash, fields));
    } catch (error) {
      if (!(error instanceof StoreCorrupt)) throw error;
      const { owner } = fields;
      unreadable.push({ hash, name: nameOfKey(hash, fields), owner: typeof owner === 'string' ? owner : undefined });
    }
  }
  return { records: records.sort(byOwnerAndAge), unreadable };
}

/** Compares keys for the order of `KeyStore.list`: by owner, then by age. */
function byOwnerAndAge(a: KeyRecord, b: KeyRecord): number {
  return compare(a.owner, b.owner) || compare(a.createdAt, b.createdAt) || compare(a.keyId, b.keyId);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
