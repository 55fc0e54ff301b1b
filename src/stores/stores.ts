/** All the stores of a deployment, whatever keeps them: what `create-stores.ts` opens. */
import type { CatalogStore } from './catalog-store.ts';
import type { KeyStore } from './key-store.ts';
import type { LimitStore } from './limit-store.ts';

/** How the store is, for metrics and logs. Readiness does not depend on it: inline decisions need no store. */
export interface StoreHealth {
  readonly kind: 'sqlite' | 'redis';
  readonly up: boolean;
  /** Connections made anew since the start. */
  readonly reconnects: number;
  /** The last round trip, milliseconds; undefined where there is none. */
  readonly latencyMs: number | undefined;
}

/** The stores of one deployment, which are opened and closed together. */
export interface Stores {
  readonly catalogs: CatalogStore;
  readonly keys: KeyStore;
  /** Absent with the embedded store: limits are then counted in memory. */
  readonly limits: LimitStore | undefined;
  health(): StoreHealth;
  /** Resolves when everything is closed. */
  close(): Promise<void>;
}
