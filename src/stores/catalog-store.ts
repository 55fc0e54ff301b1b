/** What a catalog store does. `test/stores/catalog-store-suite.ts` is its contract; every store passes it. */
import type { StoreBudget } from './budget.ts';
import type { CatalogAdditions } from './catalog-additions.ts';

/**
 * Temperatures by `<model_id>@<revision>`, as releases before `umpire learn` fitted them. They still apply where
 * nothing was learned.
 */
export type Calibrations = Readonly<Record<string, number>>;

/** A catalog as it is stored, without its owner. */
export interface CatalogRecord {
  readonly id: string;
  readonly model: string;
  /** In the order they were submitted, code unit for code unit. */
  readonly choices: readonly string[];
  readonly version: string;
  readonly visibility: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** Absent, rather than empty, if there are none. */
  readonly calibrations?: Calibrations;
  /** Absent, rather than empty, if there are none. */
  readonly additions?: CatalogAdditions;
}

/**
 * A record with its stamp, which is drawn at random at every write, so that a catalog that was deleted and created
 * again can be told from the first one.
 */
export interface StampedCatalog {
  readonly stamp: string;
  readonly record: CatalogRecord;
}

/** How much one owner may store. */
export interface CatalogBounds {
  readonly catalogs: number;
  /** Bytes of the choices of all catalogs together, as the JSON text that is stored. */
  readonly bytes: number;
}

/** No bounds: for the operator's commands. */
export const UNBOUNDED: CatalogBounds = { catalogs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

/** `full`: the owner would be past a bound. An id that exists is `exists` even if the owner is full. */
export type CatalogCreation =
  | { readonly kind: 'created'; readonly stamp: string }
  | { readonly kind: 'exists' }
  | { readonly kind: 'full'; readonly by: keyof CatalogBounds };

/**
 * Catalogs by owner and id, both of which callers have validated. Every method throws StoreUnavailable; those that
 * write also throw StoreWriteUnconfirmed, those that read also throw StoreCorrupt.
 */
export interface CatalogStore {
  /**
   * Writes a catalog whole or not at all, unless the id is taken or the owner would be past `bounds`. The write is
   * durable when the promise resolves.
   */
  create(
    owner: string,
    record: CatalogRecord,
    bounds: CatalogBounds,
    budget: StoreBudget,
    examples?: string,
  ): Promise<CatalogCreation>;
  /** The catalog, or undefined. */
  read(owner: string, id: string, budget: StoreBudget): Promise<StampedCatalog | undefined>;
  /** The stamp alone, for telling whether a copy is still current; undefined if there is no catalog. */
  stamp(owner: string, id: string, budget: StoreBudget): Promise<string | undefined>;
  /**
   * Replaces a catalog whole, under a new stamp, if it still has this stamp, and resolves to whether it had. `examples`
   * replaces its kept examples, with `''` by none; undefined leaves them. For operators, so without bounds.
   */
  replace(
    owner: string,
    stamp: string,
    record: CatalogRecord,
    budget: StoreBudget,
    examples?: string,
  ): Promise<boolean>;
  /** The labelled examples that are kept beside a catalog, as JSON lines; `''` if there are none. */
  examples(owner: string, id: string, budget: StoreBudget): Promise<string>;
  /** Deletes a catalog, also one that is unreadable, and resolves to whether there was one. */
  delete(owner: string, id: string, budget: StoreBudget): Promise<boolean>;
  /** The ids of the owner's catalogs in code-unit order. For operators, so without a bound on their number. */
  list(owner: string, budget: StoreBudget): Promise<readonly string[]>;
  /** All owners of a catalog, in code-unit order. For operators, since it scans the whole store. */
  owners(budget: StoreBudget): Promise<readonly string[]>;
}
