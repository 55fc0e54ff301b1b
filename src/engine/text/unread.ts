/**
 * Which tokens of a text a model has no words for. A WordPiece vocabulary has words and pieces of words; a word that is
 * cut into three pieces or more, has a letter of a script other than Latin, or is unknown as a whole is not read but
 * spelt. Words with digits (numbers, order ids) say nothing either way, nor does punctuation.
 */

/** The share of a text's tokens, 0 to 1, that are not read; 0 where no token is a word's. */
export type UnreadShare = (ids: readonly number[]) => number;

/** What stands for a space at the beginning of a piece. */
const SPACE_MARK = '\u2581';

/** A word of this many pieces or more is spelt. */
const SPELT = 3;

const [LETTER, DIGIT, FOREIGN, CONTINUES, UNKNOWN] = [1, 2, 4, 8, 16];

/** For WordPiece: `prefix` opens a token that continues a word. */
export function unreadOfWords(
  vocabulary: ReadonlyMap<string, number>,
  { unknown, prefix }: { readonly unknown: string; readonly prefix: string },
): UnreadShare {
  const kinds = new Uint8Array(Math.max(...vocabulary.values()) + 1);
  for (const [token, id] of vocabulary) {
    const continues = token.length > prefix.length && token.startsWith(prefix);
    const text = continues ? token.slice(prefix.length) : token;
    kinds[id] =
      token === unknown
        ? UNKNOWN
        : (continues ? CONTINUES : 0) |
          (/\p{L}/u.test(text) ? LETTER : 0) |
          (/\p{Nd}/u.test(text) ? DIGIT : 0) |
          (/(?!\p{Script=Latin})\p{L}/u.test(text) ? FOREIGN : 0);
  }
  return (ids) => {
    let [counted, unread] = [0, 0];
    for (let begin = 0; begin < ids.length; ) {
      let kind = kinds[ids[begin] as number] as number;
      let end = begin + 1;
      while (end < ids.length && ((kinds[ids[end] as number] as number) & CONTINUES) !== 0) {
        kind |= kinds[ids[end++] as number] as number;
      }
      const pieces = end - begin;
      begin = end;
      const isWord = (kind & UNKNOWN) !== 0 || ((kind & LETTER) !== 0 && (kind & DIGIT) === 0);
      if (!isWord) continue;
      counted += pieces;
      if (pieces >= SPELT || (kind & (UNKNOWN | FOREIGN)) !== 0) unread += pieces;
    }
    return counted === 0 ? 0 : unread / counted;
  };
}

/**
 * For a tokenizer whose pieces are of many languages. Not read is what has no piece at all, and letters that occur in
 * no longer piece, such as those of a script whose words the vocabulary lacks: such a text is spelt. A Chinese
 * character or a Korean syllable says something by itself. Tokens without a letter, such as single marks, say nothing
 * either way.
 */
export function unreadOfPieces(pieces: readonly string[], unknown: number): UnreadShare {
  const kinds = kindsOfPieces(pieces, unknown);
  return (ids) => {
    let [counted, unread] = [0, 0];
    for (const id of ids) {
      const kind = kinds[id] as number;
      if (kind !== 0) counted += 1;
      if ((kind & UNKNOWN) !== 0) unread += 1;
    }
    return counted === 0 ? 0 : unread / counted;
  };
}

/** A function of its own, so that the returned share does not keep what this works with in memory. */
function kindsOfPieces(pieces: readonly string[], unknown: number): Uint8Array {
  const inLonger = new Set<string>();
  for (const piece of pieces) {
    const characters = [...piece.replace(SPACE_MARK, '')];
    if (characters.length > 1) for (const character of characters) inLonger.add(character);
  }
  return Uint8Array.from(pieces, (piece, id) => {
    if (id === unknown) return LETTER | UNKNOWN;
    const text = piece.replace(SPACE_MARK, '');
    if (!/\p{L}/u.test(text)) return 0;
    const spelt = /^(?!\p{Script=Han}|\p{Script=Hangul})\p{L}$/u.test(text) && !inLonger.has(text);
    return spelt ? LETTER | UNKNOWN : LETTER;
  });
}
