/**
 * The words of a text as numbers, beside the model's vector of it: that vector says what a text means, and little of
 * which words say so. Each word and each pair of neighbours adds to eight columns, which a hash of it picks with their
 * signs (a sparse random projection: Achlioptas, "Database-friendly random projections", 2003). It has no table, so
 * nothing of the examples is kept but weights, and it depends on the text alone.
 */
import { WORD_COLUMNS } from '../../stores/catalog-additions.ts';

/** How long the list of numbers is where the vector's length is 1: words are heard, the vector is heard more. */
const LENGTH = Math.sqrt(0.2);
const COLUMNS_EACH = 8;
/** Of a longer text the first ones count: what a decision costs beside the model has a bound. */
const MOST_WORDS = 1000;
/** Letters, marks and digits; a character of a script without spaces stands alone. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{M}\p{N}])+/gu;

/** The words of a text, [`WORD_COLUMNS`]; zeros for a text without any. The same for the same text, bit for bit. */
export function wordFeatures(text: string): Float32Array {
  const sums = new Int32Array(WORD_COLUMNS);
  const seen = new Set<number>();
  const count = (hash: number): void => {
    if (seen.has(hash)) return;
    seen.add(hash);
    let state = hash;
    for (let i = 0; i < COLUMNS_EACH; i++) {
      state = mixed((state + 0x9e3779b9) | 0);
      const column = (state >>> 1) % WORD_COLUMNS;
      sums[column] = (sums[column] as number) + ((state & 1) === 0 ? 1 : -1);
    }
  };
  let words = 0;
  let before = 0;
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    const hash = hashOf(word);
    count(hash);
    if (words > 0) count(mixed(Math.imul(before, 31) ^ hash));
    before = hash;
    if (++words === MOST_WORDS) break;
  }
  let square = 0;
  for (const sum of sums) square += sum * sum;
  const scale = square === 0 ? 0 : LENGTH / Math.sqrt(square);
  return Float32Array.from(sums, (sum) => scale * sum);
}

/** A text's vector and its words, one behind the other. */
export function withWords(vector: Float32Array, text: string): Float32Array {
  const joined = new Float32Array(vector.length + WORD_COLUMNS);
  joined.set(vector);
  joined.set(wordFeatures(text), vector.length);
  return joined;
}

/** FNV-1a of UTF-16 code units, 32 bits. */
function hashOf(word: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193);
  return hash | 0;
}

/** A permutation of 32 bits whose every output bit depends on every input bit (murmur3's finaliser). */
function mixed(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
