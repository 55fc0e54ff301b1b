/**
 * Work on many things at one time whose results come out in the order of the things, with a bound on what
 * is held meanwhile.
 */

/** How much is read ahead of the first result that is not there yet. */
export interface Ahead<T> {
  readonly things: number;
  readonly weight: number;
  weigh(thing: T): number;
}

/**
 * The results in order. Reads on while results are awaited. Throws what the source or, in its place, the work throws.
 */
export async function* inOrder<T, R>(
  source: AsyncIterator<T>,
  work: (thing: T, place: number) => Promise<R>,
  { things, weight: most, weigh }: Ahead<T>,
): AsyncGenerator<R> {
  const waiting: { readonly result: Promise<R>; readonly weight: number }[] = [];
  let weight = 0;
  let place = 0;
  let reading: Promise<IteratorResult<T>> | undefined;
  let ended = false;
  for (;;) {
    if (!ended && waiting.length < things && weight < most) reading ??= read();
    const [head] = waiting;
    if (head === undefined) {
      if (reading === undefined) return;
      accept(await reading);
    } else if (reading === undefined) {
      yield await takeHead(head);
    } else {
      const first = await Promise.race([reading, head.result.then(() => undefined)]);
      if (first === undefined) yield await takeHead(head);
      else accept(first);
    }
  }

  function read(): Promise<IteratorResult<T>> {
    const next = source.next();
    // It is looked at later, and only if nothing else fails before.
    next.catch(() => {});
    return next;
  }
  function accept(next: IteratorResult<T>): void {
    reading = undefined;
    if (next.done === true) {
      ended = true;
      return;
    }
    const result = work(next.value, place++);
    result.catch(() => {});
    const own = weigh(next.value);
    weight += own;
    waiting.push({ result, weight: own });
  }
  function takeHead(head: (typeof waiting)[number]): Promise<R> {
    waiting.shift();
    weight -= head.weight;
    return head.result;
  }
}
