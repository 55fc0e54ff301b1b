/**
 * WordPiece in time linear in the text. The library tries every end of a token from the end of the word down, however
 * far beyond the longest token it is.
 */

/** The parts of the library's model of this type that are used here. */
export interface WordPieceModel {
  readonly tokens_to_ids: ReadonlyMap<string, number>;
  readonly unk_token: string | undefined;
  readonly max_input_chars_per_word: number;
  readonly config: { readonly continuing_subword_prefix: string };
  encode(words: readonly string[]): string[];
}

/** Makes the model try only lengths that a token can have. The tokens of a word stay the same. */
export function boundWordPiece(model: WordPieceModel): void {
  const { tokens_to_ids: vocabulary, unk_token: unknown = '', max_input_chars_per_word: longestWord } = model;
  const prefix = model.config.continuing_subword_prefix;
  /** The length of the longest token by its first character, with the prefix where it has one. */
  const reach = new Map<string, number>();
  for (const token of vocabulary.keys()) {
    const [first] = token.startsWith(prefix) ? token.slice(prefix.length) : token;
    if (first === undefined) continue;
    const name = (token.startsWith(prefix) ? prefix : '') + first;
    reach.set(name, Math.max(reach.get(name) ?? 0, token.length));
    // A token that begins with the prefix can also begin a word.
    reach.set(token.charAt(0), Math.max(reach.get(token.charAt(0)) ?? 0, token.length));
  }

  /** The tokens of a word, or undefined if a part of it is not in the vocabulary. */
  const tokensOf = (word: string): readonly string[] | undefined => {
    const tokens: string[] = [];
    for (let start = 0; start < word.length; ) {
      const before = start === 0 ? '' : prefix;
      const first = String.fromCodePoint(word.codePointAt(start) as number);
      let end = Math.min(word.length, start + (reach.get(before + first) ?? 0) - before.length);
      let token = before + word.slice(start, end);
      while (end > start && !vocabulary.has(token)) {
        end -= isInsidePair(word, end - 1) ? 2 : 1;
        token = before + word.slice(start, end);
      }
      if (end <= start) return undefined;
      tokens.push(token);
      start = end;
    }
    return tokens;
  };

  model.encode = (words) => {
    const all: string[] = [];
    for (const word of words) {
      const tokens = isLonger(word, longestWord) ? undefined : tokensOf(word);
      if (tokens === undefined) all.push(unknown);
      else for (const token of tokens) all.push(token);
    }
    return all;
  };
}

/** Whether a text has more than this many characters. */
export function isLonger(text: string, characters: number): boolean {
  if (text.length <= characters) return false;
  if (text.length > 2 * characters) return true;
  return [...text].length > characters;
}

/** Whether a cut at `at` would divide a surrogate pair. */
export function isInsidePair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  const after = text.charCodeAt(at);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}
