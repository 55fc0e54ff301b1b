/**
 * Parsed catalogs by owner and id, so that a decision neither fetches nor parses 300 choices. A copy is used for 800 ms
 * after the store confirmed it, so that no replica uses a deleted or re-created catalog for more than a second; after
 * that the store is asked for its stamp alone.
 */
import { LRUCache } from 'lru-cache';
import type { StoreBudget } from '../stores/budget.ts';
import { textOfChoice } from '../stores/catalog-additions.ts';
import type { CatalogRecord, CatalogStore } from '../stores/catalog-store.ts';
import { Learned } from './learned.ts';

/** The part of a stored catalog that decides, with what each decision would otherwise derive from it anew. */
export interface DecidingCatalog extends Pick<CatalogRecord, 'model' | 'calibrations'> {
  /** The choices in code-unit order. */
  readonly sortedChoices: readonly string[];
  /** What the model reads in their place, if choices are described. */
  readonly read?: ReadChoices;
  readonly learned?: Learned;
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
  readonly record: DecidingCatalog;
  /** When the query was sent whose answer confirmed the copy: milliseconds of `clock`. */
  vouched: number;
}

/** Copies of stored catalogs for decisions, each no older than a second; none at first. */
export class CatalogCache {
  readonly #store: Pick<CatalogStore, 'read' | 'stamp'>;
  readonly #clock: () => number;
  readonly #copies = new LRUCache<string, Copy>({
    maxSize: MAX_UNITS,
    sizeCalculation: ({ record: { sortedChoices, read, learned } }) =>
      [...sortedChoices, ...(read?.texts ?? [])].reduce((sum, text) => sum + text.length, UNITS_EACH) +
      Math.ceil((learned?.bytes ?? 0) / BYTES_A_UNIT),
  });
  readonly #looking = new Map<string, Promise<DecidingCatalog | undefined>>();
  #changes = 0;

  /** `clock`: milliseconds, monotonic. */
  constructor(store: Pick<CatalogStore, 'read' | 'stamp'>, clock: () => number = () => performance.now()) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The catalog, or undefined; throws what the store throws. */
  resolve(owner: string, id: string, budget: StoreBudget): Promise<DecidingCatalog | undefined> {
    // An owner's name holds no slash, so pairs do not collide.
    const key = `${owner}/${id}`;
    const copy = this.#copies.get(key);
    if (copy !== undefined && this.#clock() - copy.vouched < FRESH_MS) return Promise.resolve(copy.record);
    const running = this.#looking.get(key);
    if (running !== undefined) return running;
    const lookup = this.#look(owner, id, copy, budget).finally(() => {
      if (this.#looking.get(key) === lookup) this.#looking.delete(key);
    });
    this.#looking.set(key, lookup);
    return lookup;
  }

  /** Drops the copy: this process changed the catalog. A look-up in progress is not kept either. */
  forget(owner: string, id: string): void {
    const key = `${owner}/${id}`;
    this.#changes++;
    this.#copies.delete(key);
    this.#looking.delete(key);
  }

  async #look(
    owner: string,
    id: string,
    copy: Copy | undefined,
    budget: StoreBudget,
  ): Promise<DecidingCatalog | undefined> {
    const asked = this.#clock();
    if (copy !== undefined && (await this.#store.stamp(owner, id, budget)) === copy.stamp) {
      copy.vouched = asked;
      return copy.record;
    }
    const before = this.#changes;
    const found = await this.#store.read(owner, id, budget);
    if (found === undefined) {
      this.#copies.delete(`${owner}/${id}`);
      return undefined;
    }
    const record = decidingCatalog(found.record);
    // What this process changed meanwhile may be newer than what was read.
    if (this.#changes === before) this.#copies.set(`${owner}/${id}`, { stamp: found.stamp, record, vouched: asked });
    return record;
  }
}

function decidingCatalog({ model, choices, calibrations, additions = {} }: CatalogRecord): DecidingCatalog {
  const { descriptions, learned } = additions;
  const sortedChoices = choices.toSorted();
  return {
    model,
    sortedChoices,
    ...(calibrations === undefined ? {} : { calibrations }),
    ...(descriptions === undefined ? {} : { read: new ReadChoices(sortedChoices, descriptions) }),
    ...(learned === undefined ? {} : { learned: new Learned(learned) }),
  };
}

// Described choices as the model reads them: other texts than the choices, and in code-unit order another order.

/** What is read in place of a catalog's choices. */
export class ReadChoices {
  /** In code-unit order. */
  readonly texts: readonly string[];
  /** The places of the choices' texts among these. */
  readonly #order: Int32Array;

  /** The texts that are read for `choices`, which are in code-unit order. */
  constructor(choices: readonly string[], descriptions: Readonly<Record<string, string>>) {
    const texts = choices.map((choice) => textOfChoice(choice, descriptions));
    this.texts = texts.toSorted();
    const places = new Map(this.texts.map((text, place) => [text, place]));
    this.#order = Int32Array.from(texts, (text) => places.get(text) as number);
  }

  /** Brings probabilities in the order of the texts into the code-unit order of the choices. */
  inOrder(probabilities: Float64Array): Float64Array {
    return Float64Array.from(this.#order, (place) => probabilities[place] as number);
  }
}
