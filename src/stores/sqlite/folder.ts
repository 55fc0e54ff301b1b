/**
 * The data folder: created if it is missing, and claimed by the server that uses it; and what SQLite's errors mean for
 * a store.
 */
import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
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
