/**
 * A models folder with some of the shipped packages: each one less is a second less at every start of a test's engines.
 */
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from './temporary-folder.ts';

const shipped = fileURLToPath(new URL('../../models', import.meta.url));

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
