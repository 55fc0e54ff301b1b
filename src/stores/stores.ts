/** The interface of all stores of a deployment together, which `create-stores.ts` opens. */
import type { CatalogStore } from './catalog-store.ts';
import type { KeyStore } from './key-store.ts';
import type { LimitStore } from './limit-store.ts';

/** The health of the store, for metrics and logs. Readiness does not depend on it: inline decisions need no store. */
export interface StoreHealth {
  readonly kind: 'sqlite' | 'redis';
  readonly up: boolean;
  /** How often a connection was opened again since the start. */
  readonly reconnects: number;
  /** The last round trip, milliseconds; undefined if there was none. */
  readonly latencyMs: number | undefined;
}

/** The stores of one deployment, which are opened and closed together. */
export interface Stores {
  readonly catalogs: CatalogStore;
  readonly keys: KeyStore;
  /** Undefined with the embedded store: limits are then counted in memory. */
  readonly limits: LimitStore | undefined;
  health(): StoreHealth;
  /** Resolves when everything is closed. */
  close(): Promise<void>;
}
