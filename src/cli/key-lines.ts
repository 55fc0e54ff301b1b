/** A key as one line of JSON, for another store or a backup: its hash and what is kept with it, never its secret. */
import { isOwnerName } from '../domain/keys.ts';
import { fromKeyFields, toKeyFields } from '../stores/key-record.ts';
import type { KeyRecord } from '../stores/key-store.ts';

/** The fields of a key's line. */
export function keyLine(record: KeyRecord): object {
  const { hash, endsAt, lastUsedAt } = record;
  const fields = Object.entries(toKeyFields(record)).filter(([, text]) => text !== '');
  return {
    hash,
    ...Object.fromEntries(fields),
    ...(endsAt === undefined ? {} : { ends_at: endsAt }),
    ...(lastUsedAt === undefined ? {} : { last_used_at: lastUsedAt }),
  };
}

/** The key of a line's fields; undefined if they are not those of a key. */
export function keyFromLine(fields: Readonly<Record<string, unknown>>): KeyRecord | undefined {
  try {
    const record = fromKeyFields(String(fields.hash), fields);
    return /^[0-9a-f]{64}$/.test(record.hash) && isOwnerName(record.owner) ? record : undefined;
  } catch {
    return undefined;
  }
}
