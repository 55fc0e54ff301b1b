/** Tokenising that stops early, so that a hostile text costs little more than one at its limit. */
import type { TextTokenizer } from './family.ts';

/** How far beyond its limit a text is counted. */
export const countingFactor = 8;

/** A text's tokens, or how many it has at least when counting stopped at the bound. */
export type Tokens =
  | { readonly kind: 'tokens'; readonly ids: readonly number[] }
  | { readonly kind: 'more_than'; readonly count: number };

// Tokenised at once: a few milliseconds, or some 70 where every character is a symbol with a long name.
const pieceLength = 1 << 12;
// A cut inside a word adds at most the tokens of that word's halves.
const longestWord = 256;

/**
 * Tokenises a text of any length, but counts no further than `bound`. A long text is read piece by piece, cut after white space where there is
 * some, so that one of a megabyte costs little more than one at the bound. `pause` is awaited between pieces.
 */
export async function boundedTokens(
  tokenizer: TextTokenizer,
  text: string,
  bound: number,
  pause: () => Promise<void>,
): Promise<Tokens> {
  if (text.length <= pieceLength) return judged(tokenizer.ids(text), bound);
  const pieces: (readonly number[])[] = [];
  let count = 0;
  let exact = tokenizer.splitsAtSpace;
  for (let start = 0; start < text.length; ) {
    const { end, insideWord } = pieceEnd(text, start);
    const ids = tokenizer.ids(text.slice(start, end));
    pieces.push(ids);
    count += Math.max(0, ids.length - (insideWord ? longestWord : 0));
    if (count > bound) return { kind: 'more_than', count: bound };
    if (insideWord) exact = false;
    start = end;
    await pause();
  }
  return judged(exact ? pieces.flat() : tokenizer.ids(text), bound);
}

function judged(ids: readonly number[], bound: number): Tokens {
  return ids.length > bound ? { kind: 'more_than', count: bound } : { kind: 'tokens', ids };
}

function pieceEnd(text: string, start: number): { readonly end: number; readonly insideWord: boolean } {
  const end = start + pieceLength;
  if (end >= text.length) return { end: text.length, insideWord: false };
  for (let i = end; i > end - longestWord; i--) {
    const unit = text.charCodeAt(i - 1);
    if (unit === 0x20 || unit === 0x0a) return { end: i, insideWord: false };
  }
  // Never between the halves of a surrogate pair.
  const last = text.charCodeAt(end - 1);
  return { end: last >= 0xd800 && last < 0xdc00 ? end - 1 : end, insideWord: true };
}
