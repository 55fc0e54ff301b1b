/** Weights in an entropy code are read back as they were, and a file that is broken is refused. */
import { deflateSync } from 'node:zlib';
import test from 'ava';
import { decodeWeights } from '../../../src/engine/worker/load-family.ts';

function coded(data: Uint8Array, length = data.length): Buffer {
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(length));
  return Buffer.concat([head, deflateSync(data)]);
}

test('what was coded is read back, of any length', (t) => {
  for (const length of [1, 63, 64, 65, 100_000]) {
    const data = Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 3)) % 251);
    t.deepEqual([...decodeWeights(coded(data))], [...data], `${length}`);
  }
});

test('a file with another length than it says, or none, is refused', (t) => {
  const data = new Uint8Array(1000);
  t.throws(() => decodeWeights(coded(data, 1001)), { message: /1000 bytes and not 1001/ });
  t.throws(() => decodeWeights(coded(data, 900)));
  t.throws(() => decodeWeights(coded(data, 2 ** 40)), { message: /length of/ });
  t.throws(() => decodeWeights(new Uint8Array(5)), { message: /length of NaN/ });
  t.throws(() => decodeWeights(coded(data).subarray(0, 15)));
});
