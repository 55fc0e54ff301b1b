/**
 * A models folder with some of the shipped packages: each one less is a second less at every start of a test's engines.
 */
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from './temporary-folder.ts';

const shipped = fileURLToPath(new URL('../../models', import.meta.url));

/**
 * What engines keep of the shipped packages, for all folders of models and of data: computed once, it spares each later
 * start seconds.
 */
export const ENGINE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/engines', import.meta.url));

/** The folder. */
export function modelsDir(...ids: readonly string[]): string {
  const folder = temporaryFolder();
  for (const id of ids) {
    mkdirSync(join(folder, id));
    for (const revision of readdirSync(join(shipped, id))) {
      symlinkSync(join(shipped, id, revision), join(folder, id, revision));
    }
  }
  return folder;
}

/** A folder of data for a server of its own process that has `ENGINE_CACHE` in it, and is else empty. */
export function cachedDataDir(): string {
  const folder = temporaryFolder();
  mkdirSync(ENGINE_CACHE, { recursive: true });
  symlinkSync(ENGINE_CACHE, join(folder, 'cache'));
  return folder;
}
