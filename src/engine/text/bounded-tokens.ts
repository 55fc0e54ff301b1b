/**
 * Tokenising that works on a piece at a time and stops early, so that a hostile text costs little more than one at its
 * limit.
 */
import type { TextTokenizer } from './tokenizer.ts';

/** How far beyond its limit a text is counted. */
export const COUNTING_FACTOR = 8;

/** A text's tokens, or how many it has at least when counting stopped at the bound. */
export type Tokens =
  | { readonly kind: 'tokens'; readonly ids: readonly number[] }
  | { readonly kind: 'more_than'; readonly count: number };

// Tokenised at once: a few milliseconds, or some 70 where every character is a symbol with a long name.
const PIECE_LENGTH = 1 << 12;
// Up to here back from a piece's end, a better place for the cut is looked for.
const SEARCH_LENGTH = 256;

/**
 * Tokenises a text of any length, but counts no further than `bound`. The tokenizer is given no more than a piece at a
 * time, and `pause` is awaited between pieces.
 */
export async function boundedTokens(
  tokenizer: Pick<TextTokenizer, 'reader'>,
  text: string,
  bound: number,
  pause: () => Promise<void>,
): Promise<Tokens> {
  const reader = tokenizer.reader();
  const ids: number[] = [];
  for (let start = 0; start < text.length; ) {
    if (start > 0) await pause();
    const end = pieceEnd(text, start);
    for (const id of reader.read(text.slice(start, end))) ids.push(id);
    if (ids.length > bound) return { kind: 'more_than', count: bound };
    start = end;
  }
  for (const id of reader.end()) ids.push(id);
  return ids.length > bound ? { kind: 'more_than', count: bound } : { kind: 'tokens', ids };
}

/**
 * After white space, or else between characters that no rule reads together, or else anywhere but in a surrogate pair.
 */
function pieceEnd(text: string, start: number): number {
  const end = start + PIECE_LENGTH;
  if (end >= text.length) return text.length;
  for (let at = end; at > end - SEARCH_LENGTH; at -= 1) {
    const unit = text.charCodeAt(at - 1);
    if (unit === 0x20 || unit === 0x0a) return at;
  }
  for (let at = end; at > end - SEARCH_LENGTH; at -= 1) {
    if (standsAlone(text.charCodeAt(at - 1)) && standsAlone(text.charCodeAt(at))) return at;
  }
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}

/** ASCII letters and digits, ideographs and Hangul syllables: neither marks nor what a final sigma looks past. */
function standsAlone(unit: number): boolean {
  return (
    (unit >= 0x30 && unit <= 0x39) ||
    (unit >= 0x41 && unit <= 0x5a) ||
    (unit >= 0x61 && unit <= 0x7a) ||
    (unit >= 0x3400 && unit <= 0x9fff) ||
    (unit >= 0xac00 && unit <= 0xd7a3)
  );
}
