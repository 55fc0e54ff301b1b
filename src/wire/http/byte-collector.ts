/**
 * Puts the chunks of a body together as they come, so that a body takes memory for its bytes alone, however small its
 * chunks are.
 */

/** The bytes of one body so far. */
export interface ByteCollector {
  readonly length: number;
  add(chunk: Uint8Array): void;
  /** All bytes so far. */
  bytes(): Uint8Array;
}

/** A collector without bytes. The first chunk is not copied: most bodies have only one. */
export function createByteCollector(): ByteCollector {
  let buffer: Uint8Array = new Uint8Array(0);
  let length = 0;
  return {
    get length() {
      return length;
    },
    add(chunk) {
      if (length === 0) {
        buffer = chunk;
      } else {
        if (length + chunk.length > buffer.length) {
          const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, length + chunk.length));
          larger.set(buffer.subarray(0, length));
          buffer = larger;
        }
        buffer.set(chunk, length);
      }
      length += chunk.length;
    },
    bytes: () => buffer.subarray(0, length),
  };
}
