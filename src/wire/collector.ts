/**
 * Collects garbage near the bound of memory. V8 collects when it allocates, and a process that refuses work allocates
 * next to nothing: it would go on refusing long after the cause is gone. An ordinary collection keeps most of what it
 * frees in V8's own pool; a collection of last resort returns it to the system.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * The least milliseconds between collections, and the least pause as a multiple of what the last one took: collecting
 * must not become the main work.
 */
const INTERVAL = 3000;
const SHARE = 6;

type Collect = (options: {
  readonly type: 'major';
  readonly execution: 'sync';
  readonly flavor: 'last-resort';
}) => void;

/** A collector that collects when `needed` says so, and never more often than every three seconds. */
export function createCollector(needed: () => boolean): () => void {
  let next = 0;
  let collect: Collect | undefined;
  return () => {
    const began = performance.now();
    if (began < next || !needed()) return;
    collect ??= exposed();
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const ended = performance.now();
    next = ended + Math.max(INTERVAL, SHARE * (ended - began));
  };
}

/** V8's own function, which a context has that is created while the flag is set. */
function exposed(): Collect {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return collect;
}
