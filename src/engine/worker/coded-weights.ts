/**
 * Weights that a package keeps outside its graph in an entropy code: eight bytes with the length of the data, little
 * endian, and the data as a zlib stream (RFC 1950). A graph has the data as external data.
 */
import { inflateSync } from 'node:zlib';

const HEAD = 8;
/** Of the data, in bytes: more than any graph whose largest request could be decided in time. */
const MAX_LENGTH = 2 ** 30;

/** The data of such a file. Throws if the file is none, or has another length of data than it says. */
export function decodeWeights(file: Uint8Array): Uint8Array {
  const length = file.length < HEAD ? Number.NaN : Number(Buffer.from(file.buffer, file.byteOffset).readBigUInt64LE(0));
  if (!(length > 0 && length <= MAX_LENGTH)) throw new Error(`coded weights cannot have a length of ${length}`);
  // In one chunk, with a byte to spare: further chunks would be joined in a copy.
  const data = inflateSync(file.subarray(HEAD), { chunkSize: Math.max(64, length + 1), maxOutputLength: length + 1 });
  if (data.length !== length) throw new Error(`coded weights have ${data.length} bytes and not ${length}`);
  return data;
}
