/**
 * The data folder: created if it is missing, claimed by the server that uses it, and with a reserve of space; which
 * files lie in it; and what SQLite's errors mean for a store.
 */
import { type BigIntStats, closeSync, existsSync, mkdirSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { messageOf, StoreCorrupt, StoreUnavailable } from '../stores.ts';

/** The file whose lock shows that a server uses the folder. It stays empty. */
const CLAIM_FILE = 'server.lock';

/**
 * Creates the folder, and missing folders above it, accessible to their user alone. Throws the system's error. Node's
 * own `recursive` tries for ever if a file system refuses with ENOENT, as /proc does, so each folder is tried once
 * here.
 */
export function makeFolder(folder: string): void {
  const missing: string[] = [];
  for (let at = resolve(folder); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/**
 * Creates a file that is missing, accessible to its user alone. Throws the system's error, or Error for anything but a
 * regular file: to open a pipe for writing waits for its reader.
 */
export function makeFile(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) throw new Error(`${file} is not a regular file`);
  closeSync(openSync(file, 'a', 0o600));
}

/** A server's claim on a data folder. */
export interface FolderClaim {
  /** Whether no other server had claimed the folder. */
  readonly alone: boolean;
  release(): void;
}

/**
 * Claims the folder, which must exist, for this process. The claim is a lock of SQLite, so it ends with the process,
 * however that ends. It keeps nobody out: two servers may share the folder, but each counts limits for itself, so the
 * second one must know of the first.
 */
export function claimFolder(folder: string): FolderClaim {
  const file = join(folder, CLAIM_FILE);
  makeFile(file);
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (!isLocked(error)) throw error;
    return { alone: false, release: () => {} };
  }
  return { alone: true, release: () => lock.close() };
}

/** The primary result codes of SQLite that are told apart. */
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

/** Whether another process or thread holds the lock, so that another attempt can succeed. */
export function isLocked(error: unknown): boolean {
  const code = primaryCode(error);
  return code === BUSY || code === LOCKED;
}

/** Whether there is no room on the disk. */
export function isFull(error: unknown): boolean {
  return primaryCode(error) === FULL;
}

/**
 * The store's error (stores/stores.ts) for an error of SQLite: StoreCorrupt for a damaged file, StoreUnavailable for
 * all others, such as a full disk. An error that is not SQLite's stays as it is.
 */
export function sqliteFailure(error: unknown): unknown {
  const code = primaryCode(error);
  if (code === undefined) return error;
  const message = messageOf(error);
  if (code === CORRUPT || code === NOT_A_DATABASE) return new StoreCorrupt(message, { cause: error });
  return new StoreUnavailable(message, { cause: error });
}

function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}

// Which files lie at a database's path. An open file goes on existing when it is moved, deleted or replaced: what is
// written to it then is read by nobody, and what others write at the path is not seen.

/** What SQLite keeps beside a database in WAL mode. */
const PARTS = ['', '-wal', '-shm'] as const;

/** A name of the files at the path, the same for the same files; undefined if the database is not there. */
export function identityOf(file: string): string | undefined {
  const [database, ...beside] = PARTS.map((part) => inodeOf(`${file}${part}`));
  return database === undefined ? undefined : [database, ...beside].join(' ');
}

/** Changes while the database's file is written, so that one that is being copied can be told from a whole one. */
export function sightOf(file: string): string | undefined {
  const stats = statsOf(file);
  return stats === undefined || stats.size === 0n ? undefined : `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
}

/**
 * Opens the database that lies at the path, and never creates one. `prepare` brings the connection to where all parts
 * of the database exist. @throws what SQLite and `prepare` throw, with nothing left open, and StoreUnavailable if the
 * file was replaced meanwhile.
 */
export function openThere(
  file: string,
  timeout: number,
  prepare: (connection: DatabaseSync) => void,
): { readonly connection: DatabaseSync; readonly identity: string } {
  const before = inodeOf(file);
  const connection = new DatabaseSync(`${pathToFileURL(file).href}?mode=rw`, { timeout });
  try {
    prepare(connection);
    const identity = identityOf(file);
    if (before === undefined || identity?.startsWith(`${before} `) !== true)
      throw new StoreUnavailable(`${file} was replaced while it was opened`);
    return { connection, identity };
  } catch (error) {
    connection.close();
    throw error;
  }
}

function inodeOf(file: string): string | undefined {
  const stats = statsOf(file);
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

/** Undefined if nothing can be found there, for whatever reason. */
function statsOf(file: string): BigIntStats | undefined {
  try {
    return statSync(file, { bigint: true });
  } catch {
    return undefined;
  }
}

/** Prepares a statement, once for each connection. */
export type Prepare = (sql: string) => StatementSync;

/** Prepares the statements of a connection, which ignore named values that they do not have. */
export function statementsOf(connection: DatabaseSync): Prepare {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = connection.prepare(sql);
    statement.setAllowUnknownNamedParameters(true);
    statements.set(sql, statement);
    return statement;
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
