/**
 * Collects garbage near the bound of memory. V8 collects as it allocates, and a process that refuses work allocates next to nothing: it would go on
 * refusing long after the cause has left.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Milliseconds between collections. */
const INTERVAL = 2000;

type Collect = (options: { readonly type: 'major'; readonly execution: 'sync' }) => void;

/** A collector that works where `needed` says so, and never more often than every two seconds. */
export function createCollector(needed: () => boolean): () => void {
  let next = 0;
  let collect: Collect | undefined;
  return () => {
    const now = performance.now();
    if (now < next || !needed()) return;
    next = now + INTERVAL;
    collect ??= exposed();
    collect({ type: 'major', execution: 'sync' });
  };
}

/** V8's own function, which a new context has once the flag is set. */
function exposed(): Collect {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return collect;
}
