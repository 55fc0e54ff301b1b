/** A binary heap from which any item can be removed. */

/** The item that comes before all others is first; `push`, `pop` and `remove` take O(log n). */
export class Heap<T> {
  readonly #before: (a: T, b: T) => boolean;
  readonly #items: T[] = [];
  readonly #places = new Map<T, number>();

  /** `before` must be a strict order; an item may be in the heap once. */
  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  pop(): T | undefined {
    const [first] = this.#items;
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Returns whether the item was there. */
  remove(item: T): boolean {
    const place = this.#places.get(item);
    if (place === undefined) return false;
    this.#places.delete(item);
    const last = this.#items.pop() as T;
    if (last !== item) {
      this.#sink(last, place);
      this.#rise(last, this.#places.get(last) as number);
    }
    return true;
  }

  /** All items, in no particular order. */
  all(): readonly T[] {
    return [...this.#items];
  }

  #put(item: T, place: number): void {
    this.#items[place] = item;
    this.#places.set(item, place);
  }

  #rise(item: T, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above] as T;
      if (!this.#before(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
  }

  #sink(item: T, from: number): void {
    const items = this.#items;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= items.length) break;
      if (below + 1 < items.length && this.#before(items[below + 1] as T, items[below] as T)) below++;
      const child = items[below] as T;
      if (!this.#before(child, item)) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }
}
