/** Counts tokens where only the server has the tokenizer: a fixed number of UTF-8 bytes counts as one. */
import type { TextTokenizer } from '../../text/tokenizer.ts';

/** A tokenizer whose ids mean nothing; only their number does. */
export function createByteTokens(bytesPerToken: number): TextTokenizer {
  const tokensOf = (bytes: number): readonly number[] => new Array<number>(bytes).fill(0);
  return {
    ids: (text) => tokensOf(Math.ceil(Buffer.byteLength(text) / bytesPerToken)),
    reader() {
      let bytes = 0;
      return {
        read(piece) {
          bytes += Buffer.byteLength(piece);
          const whole = Math.floor(bytes / bytesPerToken);
          bytes -= whole * bytesPerToken;
          return [tokensOf(whole)];
        },
        end: () => [tokensOf(Math.ceil(bytes / bytesPerToken))],
      };
    },
  };
}
