/** Opens the stores that the settings name. */
import type { StoreSettings } from './settings.ts';
import { createSqliteCatalogStore } from './sqlite/catalog-store.ts';
import { EmbeddedDatabase } from './sqlite/database.ts';
import { createSqliteKeyStore } from './sqlite/key-store.ts';
import type { StoreLog, Stores } from './stores.ts';

/**
 * Opens the stores. Throws StoreUnavailable or StoreCorrupt, with a message for the operator, if an embedded store
 * cannot be opened. Redis may be away: its stores throw StoreUnavailable until it answers.
 */
export async function createStores(settings: StoreSettings, log: StoreLog): Promise<Stores> {
  if (settings.kind === 'redis') {
    const { createRedisStores } = await import('./redis/create-redis-stores.ts');
    return createRedisStores(settings, log);
  }
  const database = new EmbeddedDatabase(settings.folder, log);
  try {
    await database.opened();
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    catalogs: createSqliteCatalogStore(database),
    keys: createSqliteKeyStore(database),
    limits: undefined,
    health: () => ({ kind: 'sqlite', up: database.up, reconnects: 0, latencyMs: undefined }),
    close: () => database.close(),
  };
}
