/**
 * Reads files that somebody else may have put there. What is not a regular file of a size that was stated is refused
 * before it is opened: to open a pipe waits for ever, and keeps the process from ending; a device never ends.
 */

import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../errors.ts';
import type { PackageFile } from './manifest.ts';

/** What is read of a file that is configured by its path: no certificate, key or token is longer. */
export const MOST_SETTING_BYTES = 1024 * 1024;

/** The stats of a file. @throws the system's error, or Error if it is not a regular file. */
export async function statRegular(path: string): Promise<Stats> {
  return checked(await stat(path));
}

/** A file of at most so many bytes. @throws the system's error, or Error if it is something else. */
export async function readRegular(path: string, most: number): Promise<Buffer> {
  const handle = await openRegular(path);
  try {
    const { size } = await handle.stat();
    if (size > most) throw new Error(`it has ${size} bytes, more than ${most}`);
    // No more than that, even if the file grows meanwhile.
    const content = Buffer.alloc(size);
    const { bytesRead } = await handle.read(content, 0, size, 0);
    return content.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Opens a file for reading. @throws the system's error, or Error if it is not a regular file. */
async function openRegular(path: string): Promise<FileHandle> {
  await statRegular(path);
  // If it has become a pipe meanwhile, opening it does not wait.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    checked(await handle.stat());
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Checks that a file of a package `<models>/<id>/<revision>/` lies in that folder or elsewhere in the folder of models,
 * wherever links lead; the package's folder itself may be a link. @throws the system's error, or Error.
 */
export async function checkInside(path: string, folder: string): Promise<void> {
  const real = await realpath(path);
  const homes = await Promise.all([folder, dirname(dirname(folder))].map((home) => realpath(home)));
  if (!homes.some((home) => real.startsWith(home.endsWith(sep) ? home : home + sep)))
    throw new Error('it is a link that leads outside the folder of models');
}

/**
 * The problems of the files' contents; empty if every SHA-256 is right. The files are streamed, so memory does not grow
 * with their size.
 */
export async function verifyFiles(folder: string, files: ReadonlyMap<string, PackageFile>): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const [name, expected] of files) {
    const hash = createHash('sha256');
    try {
      const handle = await openRegular(join(folder, name));
      // Of a file that has grown meanwhile no more than was stated is read.
      await pipeline(handle.createReadStream({ highWaterMark: 1 << 20, end: expected.bytes }), hash);
      const actual = hash.digest('hex');
      if (actual !== expected.sha256)
        problems.push(`${name} has SHA-256 ${actual}, but model.json says ${expected.sha256}`);
    } catch (error) {
      problems.push(`${name} cannot be read: ${messageOf(error)}`);
    }
  }
  return problems;
}

function checked(stats: Stats): Stats {
  if (!stats.isFile()) throw new Error('it is not a regular file');
  return stats;
}
