/** Cuts long texts into pieces, which are worked on one at a time. */

/** Characters of a piece: tokenised in a few milliseconds, whatever they are. */
export const PIECE_LENGTH = 1 << 12;
// How far back from a piece's end a better place for the cut is looked for, in characters.
const SEARCH_LENGTH = 256;

/** A text's pieces in their order, none longer than PIECE_LENGTH. */
export function* piecesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = pieceEnd(text, start);
    yield text.slice(start, end);
    start = end;
  }
}

/**
 * Where a piece ends: after white space, or else between characters that no rule reads together, or else anywhere but
 * in a surrogate pair.
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

/**
 * ASCII letters and digits, ideographs and Hangul syllables: neither marks nor characters that the rule for a final
 * sigma looks past.
 */
function standsAlone(unit: number): boolean {
  return (
    (unit >= 0x30 && unit <= 0x39) ||
    (unit >= 0x41 && unit <= 0x5a) ||
    (unit >= 0x61 && unit <= 0x7a) ||
    (unit >= 0x3400 && unit <= 0x9fff) ||
    (unit >= 0xac00 && unit <= 0xd7a3)
  );
}
