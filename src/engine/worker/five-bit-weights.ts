/**
 * Weights that a package keeps in five bits. A file of n codes, n a multiple of 8, holds the low four bits of all
 * codes, two in a byte and the first of them in its lower half, and then the fifth bits, eight in a byte and the first
 * of them lowest: 5/8 n bytes. A code c stands for the odd number 2 c − 31, which a graph multiplies in int8.
 */

/** The numbers [n] of the codes, as int8. Throws if a file of such weights cannot have this length. */
export function unpackFiveBits(packed: Uint8Array): Uint8Array {
  if (packed.length % 5 !== 0) throw new Error(`five-bit weights cannot have ${packed.length} bytes`);
  const pairs = (packed.length / 5) * 4;
  const high = packed.subarray(pairs);
  const numbers = new Uint16Array(pairs);
  // Two numbers at a time, looked up by a byte of low bits and two fifth bits.
  for (let i = 0; i < pairs; i++) {
    const bits = ((high[i >> 2] as number) >> (2 * (i & 3))) & 3;
    numbers[i] = PAIRS[(bits << 8) | (packed[i] as number)] as number;
  }
  return new Uint8Array(numbers.buffer);
}

/** Indexed by two fifth bits and a byte of low ones: the two numbers as bytes, the first in the lower half. */
const PAIRS = Uint16Array.from({ length: 1024 }, (_, key) => {
  const first = (key & 15) | (((key >> 8) & 1) << 4);
  const second = ((key >> 4) & 15) | (((key >> 9) & 1) << 4);
  return ((2 * first - 31) & 0xff) | (((2 * second - 31) & 0xff) << 8);
});
