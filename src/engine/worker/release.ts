/**
 * Gives the memory of a large buffer back at once: the next garbage collection may be far off. The buffer is empty from
 * now on; one that shares its memory with others is left as it is.
 */
export function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength <= byteLength + 1) buffer.transfer(0);
}
