/** A map that never holds more than its bound: what was set longest ago is pushed out first. */
export interface BoundedMap<K, V> {
  readonly size: number;
  get(key: K): V | undefined;
  set(key: K, value: V): void;
  delete(key: K): void;
}

/** How much a map may hold. */
export interface BoundedMapOptions<V> {
  /** The most that all values may weigh together. */
  readonly bound: number;
  /** What a value weighs when it is set; 1 where this is absent. A value heavier than the bound is not kept. */
  readonly weigh?: (value: V) => number;
  /** Values that must not be pushed out. If the eight oldest are such, the map grows past its bound. */
  readonly keep?: (value: V) => boolean;
}

/** An empty map. */
export function createBoundedMap<K, V>({ bound, weigh = () => 1, keep }: BoundedMapOptions<V>): BoundedMap<K, V> {
  const entries = new Map<K, { readonly value: V; readonly weight: number }>();
  let total = 0;

  const remove = (key: K): void => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    total -= entry.weight;
    entries.delete(key);
  };

  return {
    get size() {
      return entries.size;
    },
    get: (key) => entries.get(key)?.value,
    delete: remove,
    set(key, value) {
      remove(key);
      const weight = weigh(value);
      if (weight > bound) return;
      entries.set(key, { value, weight });
      total += weight;
      if (total > bound) pushOut();
    },
  };

  function pushOut(): void {
    let kept = 0;
    for (const [key, entry] of entries) {
      if (keep?.(entry.value) === true) {
        // To the young end, so that the next call does not meet it again.
        entries.delete(key);
        entries.set(key, entry);
        if (++kept === 8) return;
        continue;
      }
      remove(key);
      if (total <= bound) return;
    }
  }
}
