/** Counts tokens where only the server has the tokenizer: so many bytes of UTF-8 make one. */
import type { TextTokenizer } from '../families/family.ts';

/** A tokenizer whose ids mean nothing. */
export function createByteTokens(bytesPerToken: number): TextTokenizer {
  return {
    ids: (text) => new Array<number>(Math.ceil(Buffer.byteLength(text) / bytesPerToken)).fill(0),
    splitsAtSpace: false,
  };
}
