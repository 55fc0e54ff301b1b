/** Memory that is no longer used goes back to the system, instead of staying with the process for later. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

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
  collect ??= exposedCollect();
  collect();
  // The memory of buffers that were garbage is freed by another thread; the next collection waits for that.
  collect();
  trim ??= findTrim();
  (await trim)?.(0n);
}

let collect: (() => void) | undefined;

/**
 * V8's own function, which a context has that is created while the flag is set. A process that is started with the flag
 * compiles what it uses of Node.js anew, since the code that is built into it was made without: a sixth of its start.
 */
function exposedCollect(): () => void {
  setFlagsFromString('--expose-gc');
  const found = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  return found;
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
