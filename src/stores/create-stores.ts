/** Opens the stores that the settings name. */
import type { CatalogStore } from './catalog-store.ts';
import type { KeyStore } from './key-store.ts';
import type { LimitStore } from './limit-store.ts';
import type { StoreLog } from './log.ts';
import type { StoreSettings } from './settings.ts';
import { createSqliteCatalogStore } from './sqlite/catalog-store.ts';
import { openDatabase } from './sqlite/database.ts';
import { createSqliteKeyStore } from './sqlite/key-store.ts';

/** How the store is, for metrics and logs. Readiness does not depend on it: inline decisions need no store. */
export interface StoreHealth {
  readonly kind: 'sqlite' | 'redis';
  readonly up: boolean;
  /** Connections made anew since the start. */
  readonly reconnects: number;
  /** The last round trip, milliseconds; undefined where there is none. */
  readonly latencyMs: number | undefined;
}

/** Everything that keeps something. */
export interface Stores {
  readonly catalogs: CatalogStore;
  readonly keys: KeyStore;
  /** Absent with the embedded store: limits are then counted in memory. */
  readonly limits: LimitStore | undefined;
  health(): StoreHealth;
  /** Resolves when everything is closed. */
  close(): Promise<void>;
}

/**
 * Opens them. An embedded store that cannot be opened throws StoreUnavailable or StoreCorrupt, with a message for the operator; Redis need
 * not be there: the stores answer StoreUnavailable until it is.
 */
export async function createStores(settings: StoreSettings, log: StoreLog): Promise<Stores> {
  if (settings.kind === 'redis') {
    const { createRedisStores } = await import('./redis/create-redis-stores.ts');
    return createRedisStores(settings, log);
  }
  const database = openDatabase(settings.folder);
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
    health: () => ({ kind: 'sqlite', up: true, reconnects: 0, latencyMs: undefined }),
    close: () => database.close(),
  };
}
