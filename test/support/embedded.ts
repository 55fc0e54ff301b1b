/** An embedded store in a folder of its own. */
import { createStores } from '../../src/stores/create-stores.ts';
import { SILENT_LOG } from '../../src/stores/log.ts';
import type { Stores } from '../../src/stores/stores.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** Opens one. */
export async function openEmbedded(): Promise<Stores & { readonly folder: string }> {
  const folder = temporaryFolder();
  const stores = await createStores({ kind: 'sqlite', folder }, SILENT_LOG);
  return { ...stores, folder };
}
