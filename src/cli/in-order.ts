/**
 * Works on many things at a time and yields the results in the order of the things, with a bound on what is held
 * meanwhile.
 */

/** How much may be read ahead of the first missing result: a number of things, and their weight together. */
export interface Ahead<T> {
  readonly things: number;
  readonly weight: number;
  weigh(thing: T): number;
}

/**
 * The results in order. Reads on while results are awaited. Throws what the source throws, or, at the place of a thing
 * whose work failed, what the work threw.
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
    // A rejection is handled where it is awaited, which does not happen if something else fails first.
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
