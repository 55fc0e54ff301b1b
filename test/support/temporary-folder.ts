/** Folders for what tests write. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];
process.once('exit', () => {
  // What a test has started may still write into its folder while it ends.
  for (const folder of made) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** A new, empty folder. It goes with the test's process, so that nothing that still uses it can lose it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-test-'));
  made.push(folder);
  return folder;
}
