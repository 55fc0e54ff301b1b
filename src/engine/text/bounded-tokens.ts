/**
 * Tokenising that works on a piece at a time and stops early, so that a hostile text costs little more than one at the
 * limit.
 */
import { piecesOf } from './pieces.ts';
import type { TextReader } from './readers.ts';
import type { TextTokenizer } from './tokenizer.ts';

/** A text is counted up to this many times its limit. */
export const COUNTING_FACTOR = 8;

/** A text's tokens, or how many it has at least if counting stopped at the bound. */
export type Tokens =
  | { readonly kind: 'tokens'; readonly ids: readonly number[] }
  | { readonly kind: 'more_than'; readonly count: number };

/**
 * A text of up to this many characters is read without a pause, even if each becomes a long name. Most choices are that
 * short.
 */
const SHORT_LENGTH = 256;

/**
 * Tokenises a text of any length, but counts no further than `bound`. The tokenizer is given no more than a piece at a
 * time, and `pause` is awaited between the parts of its answer.
 */
export async function boundedTokens(
  tokenizer: Pick<TextTokenizer, 'reader'>,
  text: string,
  bound: number,
  pause: () => Promise<void>,
): Promise<Tokens> {
  const ids: number[] = [];
  for (const part of partsOf(tokenizer.reader(), text)) {
    for (const id of part) ids.push(id);
    if (ids.length > bound) return { kind: 'more_than', count: bound };
    if (text.length > SHORT_LENGTH) await pause();
  }
  return { kind: 'tokens', ids };
}

function* partsOf(reader: TextReader, text: string): Generator<readonly number[]> {
  for (const piece of piecesOf(text)) yield* reader.read(piece);
  yield* reader.end();
}
