/** Stores that a test looks into, and what it opens them with. */
import { createStores } from '../../src/stores/create-stores.ts';
import { parseStoreSettings } from '../../src/stores/settings.ts';
import { SILENT_LOG, type StoreLog, type Stores } from '../../src/stores/stores.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** Opens the stores that an environment names. */
export const openStores = (env: Readonly<Record<string, string>>, log: StoreLog = SILENT_LOG): Promise<Stores> =>
  createStores(parseStoreSettings(env).value, log);

/** Opens an embedded store in a folder of its own. */
export async function openEmbedded(): Promise<Stores & { readonly folder: string }> {
  const folder = temporaryFolder();
  return { ...(await openStores({ UMPIRE_DATA_DIR: folder })), folder };
}
