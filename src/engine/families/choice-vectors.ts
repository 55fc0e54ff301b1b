/**
 * The cache of choice vectors of one process: bounded in bytes over all its models. It has a young and an old half:
 * what is used in the old half moves to the young one, and when the young half is full, it becomes the old one and the
 * old one is dropped. So what was used recently stays, and a hit in the young half costs one look-up.
 */

/** One revision's view of the cache, for those who share a part of it. */
export interface ChoiceVectors {
  get(choice: string): Float32Array | undefined;
  /** The vector must not be changed afterwards. */
  set(choice: string, vector: Float32Array): void;
  /** The vectors of another model within the same package, for the same sharers; the two are never mixed up. */
  ofStage(name: string): ChoiceVectors;
}

/** The cache as a whole. */
export interface ChoiceVectorCache {
  /**
   * The view of a revision and a part. Revisions never share a vector. Nor do parts: what one part holds must not show
   * in another, not even in how long a job takes.
   */
  of(revision: string, part: string): ChoiceVectors;
  /** Drops all vectors of a revision that is no longer served. */
  forget(revision: string): void;
  /** Bytes that the entries take, an estimate. */
  readonly bytes: number;
}

/** The vectors of one part, by choice. */
type Part = Map<string, Float32Array>;

/** Vectors by revision, part and choice, and the bytes that they take. */
interface Half {
  readonly revisions: Map<string, Map<string, Part>>;
  bytes: number;
}

// A map entry, a string header, a typed array with its buffer: some 250 to 300 bytes.
const ENTRY_OVERHEAD = 300;

const empty = (): Half => ({ revisions: new Map(), bytes: 0 });

/** A cache of at most `maxBytes`. */
export function createChoiceVectorCache(maxBytes: number): ChoiceVectorCache {
  let young = empty();
  let old = empty();

  const sizeOf = (choice: string, vector: Float32Array): number =>
    choice.length * 2 + vector.byteLength + ENTRY_OVERHEAD;

  const put = (revision: string, part: string, choice: string, vector: Float32Array): void => {
    const size = sizeOf(choice, vector);
    if (size > maxBytes / 2) return;
    if (young.bytes + size > maxBytes / 2) {
      old = young;
      young = empty();
    }
    const parts = known(young.revisions, revision, () => new Map<string, Part>());
    const vectors = known(parts, part, () => {
      young.bytes += ENTRY_OVERHEAD + part.length * 2;
      return new Map<string, Float32Array>();
    });
    if (!vectors.has(choice)) young.bytes += size;
    vectors.set(choice, vector);
  };

  const viewOf = (revision: string, part: string): ChoiceVectors => ({
    get(choice) {
      const recent = young.revisions.get(revision)?.get(part)?.get(choice);
      if (recent !== undefined) return recent;
      const earlier = old.revisions.get(revision)?.get(part)?.get(choice);
      if (earlier !== undefined) put(revision, part, choice, earlier);
      return earlier;
    },
    set: (choice, vector) => put(revision, part, choice, vector),
    // The name of a stage has no line break, so no two pairs of name and part are the same.
    ofStage: (name) => viewOf(revision, `${name}\n${part}`),
  });

  return {
    get bytes() {
      return young.bytes + old.bytes;
    },
    of: (revision, part) => viewOf(revision, `\n${part}`),
    forget(revision) {
      for (const half of [young, old]) {
        for (const [part, vectors] of half.revisions.get(revision) ?? []) {
          half.bytes -= ENTRY_OVERHEAD + part.length * 2;
          for (const [choice, vector] of vectors) half.bytes -= sizeOf(choice, vector);
        }
        half.revisions.delete(revision);
      }
    },
  };
}

function known<V>(map: Map<string, V>, key: string, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
