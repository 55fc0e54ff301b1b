/**
 * The embedded store's file: one SQLite database in the data folder, in WAL mode so that the operator's command and a second server can use
 * it beside the first. `synchronous=FULL`: what a caller was told is on the disk, also after a power cut.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreBudget } from '../budget.ts';
import { spend } from '../budget.ts';
import { StoreCorrupt, StoreUnavailable } from '../errors.ts';

/** The database with its rule for calls. */
export interface EmbeddedDatabase {
  readonly connection: DatabaseSync;
  /**
   * Runs work that takes well under a millisecond. While another process holds the write lock it tries again until the budget is used up,
   * without blocking the event loop meanwhile. Throws StoreUnavailable for a lock, a full disk and the like, StoreCorrupt for a damaged file.
   */
  run<T>(budget: StoreBudget, work: (connection: DatabaseSync) => T): Promise<T>;
  /** The same within `BEGIN IMMEDIATE`: all of the work or nothing. */
  transact<T>(budget: StoreBudget, work: (connection: DatabaseSync) => T): Promise<T>;
  close(): void;
}

const SCHEMA_VERSION = 1;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS catalogs (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    stamp TEXT NOT NULL,
    model TEXT NOT NULL,
    choices TEXT NOT NULL,
    version TEXT NOT NULL,
    visibility TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (owner, id)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (
    hash TEXT PRIMARY KEY,
    key_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    limits TEXT NOT NULL,
    created_at TEXT NOT NULL,
    ends_at INTEGER
  ) STRICT, WITHOUT ROWID;
`;
/** SQLite's primary result codes. */
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;
const RETRY_MS = 3;

/**
 * Opens, and where needed creates, `umpire.db` in the folder; the folder is created for its user alone. Throws StoreUnavailable or
 * StoreCorrupt with a message for the operator.
 */
export function openDatabase(folder: string): EmbeddedDatabase {
  const file = join(folder, 'umpire.db');
  let connection: DatabaseSync;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    connection = new DatabaseSync(file, { timeout: 5_000 });
  } catch (error) {
    throw new StoreUnavailable(`cannot open ${file}: ${text(error)}`, { cause: error });
  }
  try {
    connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    const version = Number(connection.prepare('PRAGMA user_version').get()?.user_version);
    if (version > SCHEMA_VERSION) throw new Error(`it was written by a newer Umpire (schema ${version})`);
    if (version < SCHEMA_VERSION) {
      connection.exec(`BEGIN IMMEDIATE; ${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`);
    }
    // It holds no secret, but who owns what is nobody else's business.
    chmodSync(file, 0o600);
    // Waiting for a lock blocks the event loop: from here on run() waits instead.
    connection.exec('PRAGMA busy_timeout = 0');
  } catch (error) {
    connection.close();
    const failure = sqliteFailure(error);
    if (failure instanceof StoreCorrupt) throw new StoreCorrupt(`${file} is damaged: ${text(error)}`, { cause: error });
    throw new StoreUnavailable(`cannot use ${file}: ${text(error)}`, { cause: error });
  }

  const run = <T>(budget: StoreBudget, work: (connection: DatabaseSync) => T): Promise<T> =>
    spend(budget, async () => {
      const deadline = performance.now() + budget.remaining;
      for (;;) {
        if (performance.now() >= deadline) throw new StoreUnavailable('the time for store work is used up');
        try {
          return work(connection);
        } catch (error) {
          if (!isLocked(error)) throw sqliteFailure(error);
          if (performance.now() + RETRY_MS >= deadline) {
            throw new StoreUnavailable('another process holds the database', { cause: error });
          }
        }
        await sleep(RETRY_MS);
      }
    });

  return {
    connection,
    run,
    transact: (budget, work) =>
      run(budget, () => {
        connection.exec('BEGIN IMMEDIATE');
        try {
          const result = work(connection);
          connection.exec('COMMIT');
          return result;
        } catch (error) {
          if (connection.isTransaction) connection.exec('ROLLBACK');
          throw error;
        }
      }),
    close: () => connection.close(),
  };
}

function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}

function isLocked(error: unknown): boolean {
  const code = primaryCode(error);
  return code === BUSY || code === LOCKED;
}

/** SQLite's failures as the stores' sentinels; others as they are. */
function sqliteFailure(error: unknown): unknown {
  const code = primaryCode(error);
  if (code === undefined) return error;
  if (code === CORRUPT || code === NOT_A_DATABASE) return new StoreCorrupt(text(error), { cause: error });
  return new StoreUnavailable(text(error), { cause: error });
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
