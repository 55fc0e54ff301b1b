/**
 * Reads files that somebody else may have put there. What is not a regular file of a size that was stated is refused
 * before it is opened: to open a pipe waits for ever, and keeps the process from ending; a device never ends.
 */

import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { dirname, sep } from 'node:path';

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
export async function openRegular(path: string): Promise<FileHandle> {
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

function checked(stats: Stats): Stats {
  if (!stats.isFile()) throw new Error('it is not a regular file');
  return stats;
}
