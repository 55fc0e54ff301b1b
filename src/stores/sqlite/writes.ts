/**
 * The writes to the embedded store, as data that can be sent to the thread that makes them, and the space on the disk
 * that is reserved for them.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { CATALOG_FIELDS, type CatalogFields, type WholeCatalogFields } from '../catalog-record.ts';
import type { CatalogBounds } from '../catalog-store.ts';
import type { KeyFields } from '../key-record.ts';
import { type KeyEnd, WRONG_CLOCK_MS } from '../key-store.ts';

/** One write. It can be cloned structurally, as messages between threads must be. */
export type Write =
  | {
      readonly kind: 'create_catalog';
      readonly owner: string;
      readonly id: string;
      readonly bounds: CatalogBounds;
      readonly fields: WholeCatalogFields;
    }
  | {
      readonly kind: 'replace_catalog';
      readonly owner: string;
      readonly id: string;
      readonly stamp: string;
      readonly fields: CatalogFields;
      /** Undefined leaves the examples that are kept. */
      readonly examples: string | undefined;
    }
  | { readonly kind: 'delete_catalog'; readonly owner: string; readonly id: string }
  | {
      readonly kind: 'add_key';
      readonly hash: string;
      readonly endsAt: number | null;
      readonly lastUsedAt: number | null;
      readonly fields: KeyFields;
    }
  | { readonly kind: 'end_key'; readonly hash: string; readonly endsAt: number; readonly endedBy: KeyEnd }
  | { readonly kind: 'use_keys'; readonly uses: readonly (readonly [hash: string, at: number])[] };

/** The outcome of a write: for `create_catalog` in words, for all others whether something changed. */
export type WriteResult = 'created' | 'exists' | 'too_many' | 'too_large' | boolean;

/** Returns the function that makes writes on a connection, within a transaction that the caller opens and commits. */
export function createWrites(connection: DatabaseSync): (write: Write) => WriteResult {
  const exists = connection.prepare('SELECT 1 FROM catalogs WHERE owner = ? AND id = ?');
  // octet_length() reads the size of a value, not the value.
  const taken = connection.prepare(
    'SELECT count(*) AS catalogs, ifnull(sum(octet_length(choices)), 0) AS bytes FROM catalogs WHERE owner = ?',
  );
  const columns = [...CATALOG_FIELDS, 'examples'];
  const names = columns.map((name) => `:${name}`).join(', ');
  const insertCatalog = connection.prepare(
    `INSERT INTO catalogs (owner, id, ${columns.join(', ')}) VALUES (:owner, :id, ${names})`,
  );
  const updates = CATALOG_FIELDS.map((name) => `${name} = :${name}`).join(', ');
  const replaceCatalog = connection.prepare(
    `UPDATE catalogs SET ${updates}, examples = ifnull(:examples, examples)
     WHERE owner = :owner AND id = :id AND stamp = :expected`,
  );
  const deleteCatalog = connection.prepare('DELETE FROM catalogs WHERE owner = ? AND id = ?');
  const insertKey = connection.prepare(
    `INSERT INTO keys (hash, key_id, owner, limits, created_at, label, ends_at, ended_by, last_used_at)
     VALUES (:hash, :key_id, :owner, :limits, :created_at, :label, :ends_at, :ended_by, :last_used_at)
     ON CONFLICT DO NOTHING`,
  );
  const endKey = connection.prepare(
    `UPDATE keys SET ended_by = iif(ends_at <= :end, ended_by, :by), ends_at = min(ifnull(ends_at, :end), :end)
     WHERE hash = :hash`,
  );
  const useKey = connection.prepare(
    `UPDATE keys SET last_used_at = :at
     WHERE hash = :hash AND (ifnull(last_used_at, 0) < :at OR last_used_at > :at + ${WRONG_CLOCK_MS})`,
  );

  return (write) => {
    switch (write.kind) {
      case 'create_catalog': {
        const { owner, id, bounds, fields } = write;
        if (exists.get(owner, id) !== undefined) return 'exists';
        const has = taken.get(owner);
        if (Number(has?.catalogs) >= bounds.catalogs) return 'too_many';
        if (Number(has?.bytes) + Buffer.byteLength(fields.choices) > bounds.bytes) return 'too_large';
        insertCatalog.run({ owner, id, ...fields });
        return 'created';
      }
      case 'replace_catalog': {
        const { owner, id, stamp, fields, examples = null } = write;
        return Number(replaceCatalog.run({ ...fields, examples, owner, id, expected: stamp }).changes) > 0;
      }
      case 'delete_catalog':
        return Number(deleteCatalog.run(write.owner, write.id).changes) > 0;
      case 'add_key':
        return (
          Number(
            insertKey.run({
              hash: write.hash,
              ends_at: write.endsAt,
              last_used_at: write.lastUsedAt,
              ...write.fields,
            }).changes,
          ) > 0
        );
      case 'end_key':
        return Number(endKey.run({ hash: write.hash, end: write.endsAt, by: write.endedBy }).changes) > 0;
      case 'use_keys': {
        let changed = 0;
        for (const [hash, at] of write.uses) changed += Number(useKey.run({ hash, at }).changes);
        return changed > 0;
      }
    }
  };
}

// Space on the disk that is reserved: given up when the disk is full, so that catalogs can still be deleted and keys
// still be created and ended, and reserved again once there is room.

/** Bytes of the reserve: more than the write-ahead log of any deletion or key command needs. */
const RESERVE_BYTES = 1024 * 1024;

/** The reserved space of a database: a file beside it. */
export class Reserve {
  readonly #file: string;

  constructor(database: string) {
    this.#file = `${database}-reserve`;
  }

  /** Reserves the space, if it is not reserved yet and there is room. */
  keep(): void {
    if (existsSync(this.#file)) return;
    try {
      writeFileSync(this.#file, Buffer.alloc(RESERVE_BYTES, 1), { mode: 0o600 });
    } catch {
      // There is not enough room, and half a reserve must not take what is left.
      this.giveUp();
    }
  }

  /** Gives the space up. Returns whether there was any. */
  giveUp(): boolean {
    if (!existsSync(this.#file)) return false;
    rmSync(this.#file, { force: true });
    return true;
  }
}
