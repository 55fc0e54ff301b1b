/**
 * Collects garbage near the bound of memory. V8 collects as it allocates, and a process that refuses work allocates
 * next to nothing: it would go on refusing long after the cause has left. An ordinary collection leaves most of what it
 * frees in V8's own pool; the one of last resort gives it back.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Milliseconds between collections, and how many times as long as the last one took at least: they may not
 * become the work.
 */
const INTERVAL = 3000;
const SHARE = 6;

type Collect = (options: {
  readonly type: 'major';
  readonly execution: 'sync';
  readonly flavor: 'last-resort';
}) => void;

/** A collector that works where `needed` says so, and never more often than every three seconds. */
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

/** V8's own function, which a new context has once the flag is set. */
function exposed(): Collect {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return collect;
}
