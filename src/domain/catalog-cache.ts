/**
 * Parsed catalogs by owner and id, so that a decision neither fetches nor parses 300 choices. A copy is used for 800 ms
 * after the store confirmed it, so that no replica uses a deleted or re-created catalog for more than a second; after
 * that the store is asked for its stamp alone.
 */
import { LRUCache } from 'lru-cache';
import type { StoreBudget } from '../stores/budget.ts';
import type { CatalogRecord, CatalogStore } from '../stores/catalog-store.ts';
import { createLearned, type Learned } from './learned.ts';
import { createReadChoices, type ReadChoices } from './read-choices.ts';

/** A record with what each decision would otherwise derive from it anew. */
export interface CachedCatalog extends Omit<CatalogRecord, 'additions'> {
  /** The choices in code-unit order. */
  readonly sortedChoices: readonly string[];
  /** What the model reads, if choices are described. */
  readonly read?: ReadChoices;
  readonly learned?: Learned;
}

/** Copies of stored catalogs for decisions, each no older than a second. */
export interface CatalogCache {
  /** The catalog, or undefined; throws what the store throws. */
  resolve(owner: string, id: string, budget: StoreBudget): Promise<CachedCatalog | undefined>;
  /** Drops the copy: this process changed the catalog. A look-up in progress is not kept either. */
  forget(owner: string, id: string): void;
}

/** Milliseconds in which a copy is used without asking the store. */
const FRESH_MS = 800;
/**
 * The size of the cache, in UTF-16 code units of all texts together and a little for each catalog: about 32 MiB at
 * the most where all letters are Latin.
 */
const MAX_UNITS = 32 * 1024 * 1024;
const UNITS_EACH = 512;
const BYTES_A_UNIT = 2;

interface Copy {
  readonly stamp: string;
  readonly record: CachedCatalog;
  /** When the query was sent whose answer confirmed the copy: milliseconds of `clock`. */
  vouched: number;
}

/** An empty cache. `clock`: milliseconds, monotonic. */
export function createCatalogCache(store: CatalogStore, clock: () => number = () => performance.now()): CatalogCache {
  const copies = new LRUCache<string, Copy>({
    maxSize: MAX_UNITS,
    sizeCalculation: ({ record: { choices, read, learned } }) =>
      [...choices, ...(read?.texts ?? [])].reduce((sum, text) => sum + text.length, UNITS_EACH) +
      Math.ceil((learned?.bytes ?? 0) / BYTES_A_UNIT),
  });
  const looking = new Map<string, Promise<CachedCatalog | undefined>>();
  let changes = 0;

  return {
    resolve(owner, id, budget) {
      // An owner's name holds no slash, so pairs do not collide.
      const key = `${owner}/${id}`;
      const copy = copies.get(key);
      if (copy !== undefined && clock() - copy.vouched < FRESH_MS) return Promise.resolve(copy.record);
      const running = looking.get(key);
      if (running !== undefined) return running;
      const lookup = look(key, owner, id, copy, budget).finally(() => {
        if (looking.get(key) === lookup) looking.delete(key);
      });
      looking.set(key, lookup);
      return lookup;
    },
    forget(owner, id) {
      const key = `${owner}/${id}`;
      changes++;
      copies.delete(key);
      looking.delete(key);
    },
  };

  async function look(
    key: string,
    owner: string,
    id: string,
    copy: Copy | undefined,
    budget: StoreBudget,
  ): Promise<CachedCatalog | undefined> {
    const asked = clock();
    if (copy !== undefined && (await store.stamp(owner, id, budget)) === copy.stamp) {
      copy.vouched = asked;
      return copy.record;
    }
    const before = changes;
    const found = await store.read(owner, id, budget);
    if (found === undefined) {
      copies.delete(key);
      return undefined;
    }
    const record = cached(found.record);
    // What this process changed meanwhile may be newer than what was read.
    if (changes === before) copies.set(key, { stamp: found.stamp, record, vouched: asked });
    return record;
  }
}

function cached({ additions = {}, ...record }: CatalogRecord): CachedCatalog {
  const { descriptions, learned } = additions;
  const sortedChoices = record.choices.toSorted();
  return {
    ...record,
    sortedChoices,
    ...(descriptions === undefined ? {} : { read: createReadChoices(sortedChoices, descriptions) }),
    ...(learned === undefined ? {} : { learned: createLearned(learned) }),
  };
}
