/** Memory that is no longer used goes back to the system, instead of staying with the process for later. */

/**
 * Gives the memory of a large buffer back at once: the next garbage collection may be far off. The buffer is empty from
 * now on; one that shares its memory with others is left as it is.
 */
export function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength <= byteLength + 1) buffer.transfer(0);
}

/**
 * Gives back what a load leaves behind: garbage, which an engine that decides little would not collect for long, and
 * the gaps between blocks that are in use, which the C library otherwise keeps (tens of MiB after a graph).
 */
export async function releaseSpare(): Promise<void> {
  globalThis.gc?.();
  // The memory of buffers that were garbage is freed by another thread; the next collection waits for that.
  globalThis.gc?.();
  trim ??= findTrim();
  (await trim)?.(0n);
}

type Trim = (pad: bigint) => number;
let trim: Promise<Trim | undefined> | undefined;

/** `malloc_trim` of glibc; undefined with another C library, or a Node.js that cannot call it. */
async function findTrim(): Promise<Trim | undefined> {
  try {
    const { dlopen } = await import('node:ffi');
    return dlopen(null, { malloc_trim: { arguments: ['u64'], return: 'i32' } }).functions.malloc_trim;
  } catch {
    return undefined;
  }
}
