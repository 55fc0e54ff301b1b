/** An embedded store in a folder of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStores } from '../../src/stores/create-stores.ts';
import { SILENT_LOG } from '../../src/stores/log.ts';
import type { Stores } from '../../src/stores/stores.ts';

/** Opens one; `remove` closes it and deletes the folder. */
export async function openEmbedded(): Promise<Stores & { readonly folder: string; remove(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-embedded-'));
  const stores = await createStores({ kind: 'sqlite', folder }, SILENT_LOG);
  return {
    ...stores,
    folder,
    async remove() {
      await stores.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
