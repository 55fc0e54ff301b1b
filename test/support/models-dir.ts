/** A models folder with some of the shipped packages: each one less is a second less at every start of a test's engines. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const shipped = fileURLToPath(new URL('../../models', import.meta.url));

const made: string[] = [];
process.once('exit', () => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** The folder; it goes with the process. */
export function modelsDir(...ids: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-models-'));
  made.push(folder);
  for (const id of ids) {
    for (const revision of readdirSync(join(shipped, id))) {
      mkdirSync(join(folder, id, revision), { recursive: true });
      for (const file of readdirSync(join(shipped, id, revision))) {
        symlinkSync(join(shipped, id, revision, file), join(folder, id, revision, file));
      }
    }
  }
  return folder;
}
