/** Verifies the files of a package against its manifest. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../errors.ts';
import type { PackageFile } from './manifest.ts';
import { openRegular } from './regular-file.ts';

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
