/**
 * The embedded store: one SQLite database in the data folder. In WAL mode the operator's command and a second server
 * can use it beside the first. With `synchronous=FULL` a write that a caller was told of survives a power cut.
 */
import { chmodSync, closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type StoreBudget, spend } from '../budget.ts';
import { DATABASE_FILE } from '../settings.ts';
import { messageOf, StoreCorrupt, StoreUnavailable } from '../stores.ts';
import { makeFolder, sqliteFailure } from './folder.ts';
import { createWriteQueue, type WriteQueue } from './write-queue.ts';
import { createReserve } from './writes.ts';

/** The database. Reads are made on the calling thread, in a few microseconds each; writes on a thread of their own. */
export interface EmbeddedDatabase {
  readonly connection: DatabaseSync;
  /**
   * Runs `work`, which reads. Throws StoreUnavailable, also for a spent budget, and StoreCorrupt for a damaged file.
   */
  read<T>(budget: StoreBudget, work: () => T): Promise<T>;
  write: WriteQueue['write'];
  /** Resolves when the thread that writes has opened the database. */
  opened: WriteQueue['opened'];
  /** Resolves when all writes are done. */
  close(): Promise<void>;
}

/** The steps from an empty file to the present schema. The file's `user_version` is how many of them it has taken. */
const MIGRATIONS = [
  `
  CREATE TABLE catalogs (
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
  CREATE TABLE keys (
    hash TEXT PRIMARY KEY,
    key_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    limits TEXT NOT NULL,
    created_at TEXT NOT NULL,
    ends_at INTEGER
  ) STRICT, WITHOUT ROWID;
  `,
  "ALTER TABLE catalogs ADD COLUMN calibrations TEXT NOT NULL DEFAULT '{}'",
  `
  ALTER TABLE keys ADD COLUMN label TEXT NOT NULL DEFAULT '';
  ALTER TABLE keys ADD COLUMN ended_by TEXT NOT NULL DEFAULT '';
  ALTER TABLE keys ADD COLUMN last_used_at INTEGER;
  `,
  `
  ALTER TABLE catalogs ADD COLUMN additions TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE catalogs ADD COLUMN examples TEXT NOT NULL DEFAULT '';
  `,
];

/**
 * Opens `umpire.db` in the folder, and creates both if they are missing, accessible to their user alone. Throws
 * StoreUnavailable or StoreCorrupt with a message for the operator.
 */
export function openDatabase(folder: string): EmbeddedDatabase {
  const file = join(folder, DATABASE_FILE);
  try {
    makeFolder(folder);
    // The file holds no secret, but what an owner has is private. SQLite gives the files beside it the same mode.
    closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
  } catch (error) {
    throw new StoreUnavailable(`cannot open ${file}: ${messageOf(error)}`, { cause: error });
  }
  const connection = connect(file);

  const writes = createWriteQueue(file);
  return {
    connection,
    read: (budget, work) =>
      spend(budget, async () => {
        if (budget.remaining <= 0) throw new StoreUnavailable('the time for store work is used up');
        try {
          return work();
        } catch (error) {
          throw sqliteFailure(error);
        }
      }),
    write: writes.write,
    opened: writes.opened,
    async close() {
      await writes.close();
      connection.close();
    },
  };
}

/**
 * A connection to the database, migrated to the present schema. Opening it takes room on the disk; if the disk is full,
 * the reserve is given up for it.
 */
function connect(file: string): DatabaseSync {
  try {
    return prepare(file);
  } catch (error) {
    const failure = sqliteFailure(error);
    if (failure instanceof StoreCorrupt)
      throw new StoreCorrupt(`${file} is damaged: ${messageOf(error)}`, { cause: error });
    if (failure instanceof StoreUnavailable && createReserve(file).giveUp()) return connect(file);
    throw new StoreUnavailable(`cannot use ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** Opens and migrates the database. @throws what SQLite throws, with nothing left open. */
function prepare(file: string): DatabaseSync {
  const connection = new DatabaseSync(file, { timeout: 5_000 });
  try {
    connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    const version = versionOf(connection);
    if (version > MIGRATIONS.length) throw new Error(`it was written by a newer Umpire (schema ${version})`);
    if (version < MIGRATIONS.length) migrate(connection);
    // Readers in WAL mode wait for nobody, and waiting for a lock would block the event loop.
    connection.exec('PRAGMA busy_timeout = 0');
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function versionOf(connection: DatabaseSync): number {
  return Number(connection.prepare('PRAGMA user_version').get()?.user_version);
}

function migrate(connection: DatabaseSync): void {
  connection.exec('BEGIN IMMEDIATE');
  // The version is read again under the lock: another process may have migrated the file meanwhile.
  for (const step of MIGRATIONS.slice(versionOf(connection))) connection.exec(step);
  connection.exec(`PRAGMA user_version = ${MIGRATIONS.length}; COMMIT;`);
}
