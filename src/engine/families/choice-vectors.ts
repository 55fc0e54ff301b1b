/** The cache of choice vectors of one process: bounded in bytes over all its models; what was used recently stays. */
import { LRUCache } from 'lru-cache';

/** One revision's view of the cache, for those who share a part of it. */
export interface ChoiceVectors {
  get(choice: string): Float32Array | undefined;
  /** The vector must not be changed afterwards. */
  set(choice: string, vector: Float32Array): void;
  /** The vectors of another model within the same package, for the same sharers; the two are never mixed up. */
  ofStage(name: string): ChoiceVectors;
}

// A map entry, a string header, a typed array with its buffer, and the list of what was used last.
const ENTRY_OVERHEAD = 350;

/** The cache as a whole. */
export class ChoiceVectorCache {
  readonly #vectors: LRUCache<string, Float32Array>;

  /** Holds at most `maxBytes`, by estimate; nothing if that is 0. */
  constructor(maxBytes: number) {
    this.#vectors = new LRUCache({
      // It takes no bound of 0, and nothing fits into one byte.
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: ({ byteLength }, key) => 2 * key.length + byteLength + ENTRY_OVERHEAD,
    });
  }

  /** Bytes that the entries take, an estimate. */
  get bytes(): number {
    return this.#vectors.calculatedSize;
  }

  /**
   * The view of a revision and a part. Revisions never share a vector. Nor do parts: what one part holds must not show
   * in another, not even in how long a job takes.
   */
  of(revision: string, part: string, stage = ''): ChoiceVectors {
    // The length of the part keeps it apart from the choice, and no revision or stage has a line break in its name.
    const place = `${revision}\n${stage}\n${part.length}\n${part}`;
    return {
      get: (choice) => this.#vectors.get(place + choice),
      set: (choice, vector) => void this.#vectors.set(place + choice, vector),
      ofStage: (name) => this.of(revision, part, name),
    };
  }

  /** Drops all vectors of a revision that is no longer served. */
  forget(revision: string): void {
    for (const key of [...this.#vectors.keys()]) if (key.startsWith(`${revision}\n`)) this.#vectors.delete(key);
  }
}
