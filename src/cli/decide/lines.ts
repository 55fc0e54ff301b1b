/**
 * Splits a text that arrives in pieces into lines, with a bound on how much of one line is held, and works on many of
 * them at a time.
 */

/** One line without its line feed; a carriage return before that is kept. */
export interface Line {
  /** The number of the line in its file, from 1. */
  readonly number: number;
  readonly text: string;
  /** Why the line cannot be read; `text` is empty then. */
  readonly problem?: string;
  /** Bytes from the beginning of the file to the end of the line, its line feed included. */
  readonly end: number;
  /** False for a last line that no line feed ends. */
  readonly whole: boolean;
}

/** Bytes of a line that is read: more than the 1 MiB of a request's body, even if escapes take six bytes for each. */
const MOST_BYTES = 8 * 1024 * 1024;
/** The byte that ends a line. */
const LINE_FEED = 0x0a;
/** What some programs write at the beginning of a text. */
const BYTE_ORDER_MARK = '\ufeff';

/** The lines of a text in UTF-8. A byte order mark is left out. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let held: Uint8Array[] = [];
  let size = 0;
  let number = 1;
  let offset = 0;
  const take = (rest: Uint8Array, whole: boolean): Line => {
    const bytes = size + rest.length;
    offset += bytes + (whole ? 1 : 0);
    const place = { number: number++, end: offset, whole };
    const parts = [...held, rest];
    held = [];
    size = 0;
    if (bytes > MOST_BYTES) return { ...place, text: '', problem: `is longer than ${MOST_BYTES} bytes` };
    try {
      const text = decoder.decode(parts.length === 1 ? rest : Buffer.concat(parts));
      return { ...place, text: place.number === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text };
    } catch {
      return { ...place, text: '', problem: 'is not UTF-8' };
    }
  };
  for await (const piece of pieces) {
    let from = 0;
    for (let at = piece.indexOf(LINE_FEED); at !== -1; at = piece.indexOf(LINE_FEED, from)) {
      yield take(piece.subarray(from, at), true);
      from = at + 1;
    }
    const rest = piece.subarray(from);
    // Of a line that is too long nothing is kept but its length.
    if (size <= MOST_BYTES) held.push(rest);
    else held = [];
    size += rest.length;
  }
  if (size > 0) yield take(new Uint8Array(0), false);
}

/** The lines of a text that is in memory as a whole; `end` is not counted. */
export function* linesOfText(text: string): Generator<Line> {
  const lines = text.replace(/^\ufeff/u, '').split('\n');
  for (const [place, line] of lines.entries()) {
    const whole = place < lines.length - 1;
    if (whole || line !== '') yield { number: place + 1, text: line, end: 0, whole };
  }
}

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
