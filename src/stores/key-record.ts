/** Converts a key's record to text fields, which are the same in every store, and back. */
import type { KeyLimits, KeyRecord } from './key-store.ts';
import { StoreCorrupt } from './stores.ts';

/**
 * What is stored of a key beside its hash and its times, `ends_at` and `last_used_at`, which are milliseconds since the
 * epoch and absent or null while there is none. `limits` is JSON. Keys that were written before there were labels lack
 * `label` and `ended_by`.
 */
export interface KeyFields {
  readonly key_id: string;
  readonly owner: string;
  readonly limits: string;
  readonly created_at: string;
  /** What the operator calls the key; empty if it has no label. */
  readonly label: string;
  /** A `KeyEnd`; empty while no end is set. */
  readonly ended_by: string;
}

/** Characters that a key's label may have. */
export const MAX_LABEL = 100;

/** A record's fields, without its times. */
export function toKeyFields(record: KeyRecord): KeyFields {
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
  if (!sound || limits === undefined || Number.isNaN(endsAt) || Number.isNaN(lastUsedAt)) {
    throw new StoreCorrupt(
      `the record of key ${typeof keyId === 'string' ? keyId : 'with an unknown id'} is not readable`,
    );
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

function timeFrom(value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : Number(value);
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
  return typeof perSecond === 'number' && perSecond > 0 && typeof burst === 'number' && burst >= 1;
}

function isCount(value: unknown): value is number | 'off' | undefined {
  return value === undefined || value === 'off' || (typeof value === 'number' && value >= 1);
}

/** Compares keys for the order of `KeyStore.list`: by owner, then by age. */
export function byOwnerAndAge(a: KeyRecord, b: KeyRecord): number {
  return compare(a.owner, b.owner) || compare(a.createdAt, b.createdAt) || compare(a.keyId, b.keyId);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
