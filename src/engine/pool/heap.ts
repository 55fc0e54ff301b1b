/** A binary heap from which any item can be removed. */

/** The item that comes before all others is first; `push`, `pop` and `remove` take O(log n). */
export interface Heap<T> {
  push(item: T): void;
  peek(): T | undefined;
  pop(): T | undefined;
  /** Returns whether the item was there. */
  remove(item: T): boolean;
  /** All items, in no particular order. */
  all(): readonly T[];
  readonly size: number;
}

/** `before` must be a strict order; an item may be in the heap once. */
export function createHeap<T>(before: (a: T, b: T) => boolean): Heap<T> {
  const items: T[] = [];
  const places = new Map<T, number>();

  const put = (item: T, place: number): void => {
    items[place] = item;
    places.set(item, place);
  };

  const rise = (item: T, from: number): void => {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = items[above] as T;
      if (!before(item, parent)) break;
      put(parent, place);
      place = above;
    }
    put(item, place);
  };

  const sink = (item: T, from: number): void => {
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= items.length) break;
      if (below + 1 < items.length && before(items[below + 1] as T, items[below] as T)) below++;
      const child = items[below] as T;
      if (!before(child, item)) break;
      put(child, place);
      place = below;
    }
    put(item, place);
  };

  const remove = (item: T): boolean => {
    const place = places.get(item);
    if (place === undefined) return false;
    places.delete(item);
    const last = items.pop() as T;
    if (last !== item) {
      sink(last, place);
      rise(last, places.get(last) as number);
    }
    return true;
  };

  return {
    push(item) {
      items.push(item);
      rise(item, items.length - 1);
    },
    peek: () => items[0],
    pop() {
      const [first] = items;
      if (first !== undefined) remove(first);
      return first;
    },
    remove,
    all: () => [...items],
    get size() {
      return items.length;
    },
  };
}
