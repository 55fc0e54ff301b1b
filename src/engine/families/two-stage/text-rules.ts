/** Rewrites a text before it is tokenised: symbols are read by their names, and identifiers as words. */

/** Rewrites texts by a package's table of symbols. */
export interface TextRules {
  /** For inputs and instructions. */
  plain(text: string): string;
  /** For choices, before `plain`: those that are written as identifiers become words. */
  words(choice: string): string;
}

/** The rules for a table of symbols. `symbols`: character → the words that it is read as, with their own spaces. */
export function createTextRules(symbols: ReadonlyMap<string, string>): TextRules {
  const plain = (text: string): string => {
    if (isAscii(text)) return text;
    let read = '';
    for (const character of text) read += symbols.get(character) ?? character;
    return read;
  };
  return {
    plain,
    words(choice) {
      let words = choice.replace(/_+/g, ' ');
      if (!/\s/.test(choice)) {
        words = words.replace(/(?<=[A-Za-z])-(?=[A-Za-z])/g, ' ').replace(/(?<=[A-Za-z][a-z])(?=[A-Z])/g, ' ');
      }
      return words.trim() === '' ? choice : words;
    },
  };
}

/** Reads the content of `symbols.json`. Throws if it is not an object of strings. */
export function readSymbols(content: unknown): ReadonlyMap<string, string> {
  const entries = typeof content === 'object' && content !== null ? Object.entries(content) : [];
  if (entries.length === 0 || entries.some(([, words]) => typeof words !== 'string')) {
    throw new Error('the symbols are not an object of strings');
  }
  return new Map(entries);
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}
