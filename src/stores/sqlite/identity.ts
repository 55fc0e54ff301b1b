/**
 * Which files lie at a database's path. An open file goes on existing when it is moved, deleted or replaced: what is
 * written to it then is read by nobody, and what others write at the path is not seen.
 */
import { type BigIntStats, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StoreUnavailable } from '../stores.ts';

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
