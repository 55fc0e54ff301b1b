/** The cache of choice vectors: bounded in bytes, shared by all models of one process, least recently used out first. */

/** One revision's view of the cache. */
export interface ChoiceVectors {
  get(choice: string): Float32Array | undefined;
  /** The vector must not be changed afterwards. */
  set(choice: string, vector: Float32Array): void;
}

/** The cache as a whole. */
export interface ChoiceVectorCache {
  /** `revision` tells the models apart; revisions never share a vector. */
  of(revision: string): ChoiceVectors;
  /** Drops all vectors of a revision that is no longer served. */
  forget(revision: string): void;
  /** What the entries take, an estimate in bytes. */
  readonly bytes: number;
}

// A map entry, a string header, a typed array with its buffer: measured at 250 to 300 bytes.
const entryOverhead = 300;

/** A cache of at most `maxBytes`. */
export function createChoiceVectorCache(maxBytes: number): ChoiceVectorCache {
  // One map for all revisions, so that the bound and the order of use are common; a Map iterates in insertion order.
  const entries = new Map<string, { readonly vector: Float32Array; readonly size: number }>();
  let bytes = 0;

  const remove = (key: string, size: number): void => {
    entries.delete(key);
    bytes -= size;
  };

  return {
    get bytes() {
      return bytes;
    },
    of(revision) {
      // Revision keys cannot hold a line feed, so a key has one reading.
      const prefix = `${revision}\n`;
      return {
        get(choice) {
          const key = prefix + choice;
          const entry = entries.get(key);
          if (entry === undefined) return undefined;
          entries.delete(key);
          entries.set(key, entry);
          return entry.vector;
        },
        set(choice, vector) {
          const key = prefix + choice;
          const size = key.length * 2 + vector.byteLength + entryOverhead;
          if (size > maxBytes) return;
          const known = entries.get(key);
          if (known !== undefined) remove(key, known.size);
          entries.set(key, { vector, size });
          bytes += size;
          for (const [oldest, { size: freed }] of entries) {
            if (bytes <= maxBytes) break;
            remove(oldest, freed);
          }
        },
      };
    },
    forget(revision) {
      for (const [key, { size }] of entries) if (key.startsWith(`${revision}\n`)) remove(key, size);
    },
  };
}
