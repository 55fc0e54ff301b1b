/** Logs once for each catalog that what it learned is for another revision than the one that decides. */
import { LRUCache } from 'lru-cache';
import type { Logger } from '../logger.ts';

const MOST = 4096;

/** The notice that `createDecider` gives; it remembers which it has given. */
export function createUnlearnedNotice(
  log: Pick<Logger, 'warn'>,
): (owner: string, catalog: string, learnedFor: string, model: string) => void {
  const told = new LRUCache<string, true>({ maxSize: MOST, sizeCalculation: () => 1 });
  return (owner, catalog, learnedFor, model) => {
    const name = `${owner}/${catalog} ${learnedFor} ${model}`;
    if (told.has(name)) return;
    told.set(name, true);
    log.warn(
      { owner, catalog, learnedFor, model },
      'what the catalog learned is for another revision: it decides zero-shot until umpire learn is run again',
    );
  };
}
