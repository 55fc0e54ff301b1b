/**
 * The embedded store: one SQLite database in the data folder. In WAL mode the operator's command and a second server
 * can use it beside the first. With `synchronous=FULL` a write that a caller was told of survives a power cut. The
 * store is the file at the path: one that was moved, deleted or replaced is noticed within seconds.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type StoreBudget, spend } from '../budget.ts';
import { DATABASE_FILE } from '../settings.ts';
import { messageOf, StoreCorrupt, type StoreLog, StoreUnavailable } from '../stores.ts';
import {
  identityOf,
  makeFile,
  makeFolder,
  openThere,
  type Prepare,
  Reserve,
  sightOf,
  sqliteFailure,
  statementsOf,
} from './folder.ts';
import { type Write, WriteQueue, type WriteResult } from './write-queue.ts';

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

/** An open connection, and the files that it is open on. */
interface Open {
  readonly connection: DatabaseSync;
  readonly identity: string;
  readonly prepare: Prepare;
  readonly writes: WriteQueue;
}

/** Milliseconds between looks whether the database still lies at its path. */
const LOOK_MS = 1_000;
/** Milliseconds that opening waits for locks: at the start of a process, and again while requests wait behind it. */
const START_LOCK_MS = 5_000;
const AGAIN_LOCK_MS = 250;

/**
 * The database `umpire.db` of a data folder. Reads are made on the calling thread, in a few microseconds each; writes
 * on a thread of their own. It is `here` while the file that is open lies at its path, `away` from when that was moved,
 * deleted or replaced until a whole file lies there, which is then opened in its place, and at the end `closed`.
 */
export class EmbeddedDatabase {
  readonly #file: string;
  readonly #log: StoreLog;
  readonly #timer: NodeJS.Timeout;
  #open: Open | undefined;
  #state: 'here' | 'away' | 'closed' = 'here';
  #looking: Promise<void> | undefined;
  #sight: string | undefined;
  #problem = '';

  /**
   * Opens the database, and creates folder and file if they are missing, accessible to their user alone. Throws
   * StoreUnavailable or StoreCorrupt with a message for the operator.
   */
  constructor(folder: string, log: StoreLog) {
    this.#file = join(folder, DATABASE_FILE);
    this.#log = log;
    try {
      makeFolder(folder);
      // The file holds no secret, but what an owner has is private. SQLite gives the files beside it the same mode.
      makeFile(this.#file);
      chmodSync(this.#file, 0o600);
    } catch (error) {
      throw new StoreUnavailable(`cannot open ${this.#file}: ${messageOf(error)}`, { cause: error });
    }
    this.#open = openAt(this.#file, START_LOCK_MS);
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look()
        .catch((error: unknown) => this.#log.error({ err: error }, 'the data file cannot be looked at'))
        .finally(() => {
          this.#looking = undefined;
        });
    }, LOOK_MS).unref();
  }

  /** Whether the file that is open lies at its path. */
  get up(): boolean {
    return this.#state === 'here';
  }

  /**
   * Runs `work`, which reads. Throws StoreUnavailable, also for a spent budget, and StoreCorrupt for a damaged file.
   */
  read<T>(budget: StoreBudget, work: (prepare: Prepare) => T): Promise<T> {
    return spend(budget, async () => {
      if (budget.remaining <= 0) throw new StoreUnavailable('the time for store work is used up');
      const { prepare } = this.#here();
      try {
        return work(prepare);
      } catch (error) {
        throw sqliteFailure(error);
      }
    });
  }

  /** See `WriteQueue.write`. */
  async write(budget: StoreBudget, write: Write): Promise<WriteResult> {
    return await this.#here().writes.write(budget, write);
  }

  /** Resolves when the thread that writes has opened the database. */
  async opened(): Promise<void> {
    await this.#here().writes.opened();
  }

  /** Resolves when all writes are done. */
  async close(): Promise<void> {
    this.#state = 'closed';
    clearInterval(this.#timer);
    await this.#looking;
    await this.#closeFiles();
  }

  #here(): Open {
    if (this.#state === 'here' && this.#open !== undefined) return this.#open;
    throw new StoreUnavailable(`${this.#file} is not the file that was opened`);
  }

  /** Compares what lies at the path with what is open. */
  async #look(): Promise<void> {
    const there = identityOf(this.#file);
    if (there !== undefined && there === this.#open?.identity) {
      if (this.#state === 'away')
        this.#log.warn({ file: this.#file }, 'the data file is back: keys and catalogs go on');
      if (this.#state === 'away') this.#state = 'here';
      return;
    }
    if (this.#state === 'here') {
      this.#state = 'away';
      this.#log.error(
        { file: this.#file },
        'the data file was moved, deleted or replaced: keys and catalogs wait until a whole file lies at its path',
      );
      // Whoever moved the file then has everything in it, and what comes in its place finds no log of another file.
      try {
        this.#open?.connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      } catch {}
    }
    const sight = sightOf(this.#file);
    const isWhole = sight !== undefined && sight === this.#sight;
    this.#sight = sight;
    if (isWhole) await this.#openAgain();
  }

  async #openAgain(): Promise<void> {
    try {
      await this.#closeFiles();
      this.#open = openAt(this.#file, AGAIN_LOCK_MS);
      await this.#open.writes.opened();
      if (this.#state === 'closed') return;
      this.#state = 'here';
      this.#problem = '';
      this.#log.warn(
        { file: this.#file },
        'opened the data file that lies there now: keys and catalogs are those in it',
      );
    } catch (error) {
      await this.#closeFiles();
      const problem = messageOf(error);
      if (problem !== this.#problem) this.#log.error({ err: error }, 'the data file that lies there cannot be opened');
      this.#problem = problem;
    }
  }

  async #closeFiles(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    await open?.writes.close();
    open?.connection.close();
  }
}

function openAt(file: string, lockMs: number): Open {
  const { connection, identity } = connect(file, lockMs);
  return { connection, identity, prepare: statementsOf(connection), writes: new WriteQueue(file) };
}

/**
 * A connection to the database, migrated to the present schema. Opening it takes room on the disk; if the disk is full,
 * the reserve is given up for it.
 */
function connect(file: string, lockMs: number): Pick<Open, 'connection' | 'identity'> {
  try {
    return openThere(file, lockMs, migrated);
  } catch (error) {
    const failure = sqliteFailure(error);
    if (failure instanceof StoreCorrupt)
      throw new StoreCorrupt(`${file} is damaged: ${messageOf(error)}`, { cause: error });
    if (failure instanceof StoreUnavailable && new Reserve(file).giveUp()) return connect(file, lockMs);
    throw new StoreUnavailable(`cannot use ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** Migrates the database that was opened. @throws what SQLite throws. */
function migrated(connection: DatabaseSync): void {
  connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  const version = versionOf(connection);
  if (version > MIGRATIONS.length) throw new Error(`it was written by a newer Umpire (schema ${version})`);
  if (version < MIGRATIONS.length) migrate(connection);
  // Readers in WAL mode wait for nobody, and waiting for a lock would block the event loop.
  connection.exec('PRAGMA busy_timeout = 0');
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
