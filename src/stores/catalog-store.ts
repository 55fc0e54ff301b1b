/** What a catalog store does. `test/stores/catalog-store-suite.ts` is its contract; every store passes it. */
import type { StoreBudget } from './budget.ts';
import type { CatalogAdditions } from './catalog-additions.ts';

/**
 * Temperatures by `<model_id>@<revision>`, as releases before `umpire learn` fitted them. They decide where
 * nothing was learned.
 */
export type Calibrations = Readonly<Record<string, number>>;

/** A catalog as it is kept. */
export interface CatalogRecord {
  readonly id: string;
  readonly model: string;
  /** In the order they were submitted, code unit for code unit. */
  readonly choices: readonly string[];
  readonly version: string;
  readonly visibility: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** Not there, rather than empty, if there are none. */
  readonly calibrations?: Calibrations;
  /** Not there, rather than empty, if there are none. */
  readonly additions?: CatalogAdditions;
}

/**
 * A record with its stamp: random, drawn at every write, so that a deleted and re-created catalog is told
 * from the first one.
 */
export interface StampedCatalog {
  readonly stamp: string;
  readonly record: CatalogRecord;
}

/** The most that one owner may have. */
export interface CatalogBounds {
  readonly catalogs: number;
  /** Bytes of the choices of all catalogs together, as the JSON text that is kept. */
  readonly bytes: number;
}

/** No bounds: for the operator's commands. */
export const UNBOUNDED: CatalogBounds = { catalogs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

/** `full`: one more would be past a bound. An id that exists is `exists` also when the owner is full. */
export type CatalogCreation =
  | { readonly kind: 'created'; readonly stamp: string }
  | { readonly kind: 'exists' }
  | { readonly kind: 'full'; readonly by: keyof CatalogBounds };

/**
 * Catalogs by owner and id. Owners and ids are valid when they come here. Every method throws StoreUnavailable; those
 * that write throw StoreWriteUnconfirmed, those that read StoreCorrupt.
 */
export interface CatalogStore {
  /**
   * Writes a catalog whole or not at all, unless the id is taken or the owner would be past `bounds`. Lasting
   * when it resolves.
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
   * Replaces a catalog whole, under a new stamp, if it still has this one; its kept examples with it if `examples` are
   * given, `''` for none. Whether it had. For operators: no bounds.
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
  /** Whether there was one to delete. Deletes unreadable ones, too. */
  delete(owner: string, id: string, budget: StoreBudget): Promise<boolean>;
  /** The owner's ids in code-unit order. For operators: no bound on the answer. */
  list(owner: string, budget: StoreBudget): Promise<readonly string[]>;
  /** Everybody who has a catalog, in code-unit order. For operators: walks everything. */
  owners(budget: StoreBudget): Promise<readonly string[]>;
}
