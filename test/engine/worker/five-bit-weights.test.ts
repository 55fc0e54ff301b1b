import test from 'ava';
import { unpackFiveBits } from '../../../src/engine/worker/five-bit-weights.ts';

/** The file of codes, bit by bit as the format says. */
function packed(codes: readonly number[]): Uint8Array {
  const half = codes.length / 2;
  const bytes = new Uint8Array(half + codes.length / 8);
  for (const [i, code] of codes.entries()) {
    bytes[i >> 1] = (bytes[i >> 1] as number) | ((code & 15) << (4 * (i % 2)));
    bytes[half + (i >> 3)] = (bytes[half + (i >> 3)] as number) | ((code >> 4) << (i % 8));
  }
  return bytes;
}

test('every code becomes its odd number, at every place of its bytes', (t) => {
  const codes = Array.from({ length: 32 * 33 }, (_, i) => (i * 7 + (i >> 5)) % 32);
  t.deepEqual(
    [...new Int8Array(unpackFiveBits(packed(codes)).buffer)],
    codes.map((code) => 2 * code - 31),
  );
});

test('a file whose length no codes have is refused', (t) => {
  t.throws(() => unpackFiveBits(new Uint8Array(11)), { message: /11 bytes/ });
});
