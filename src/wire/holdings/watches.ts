/**
 * Streams that are meant to stay open: they are counted for each address and in all, and end after a while, so that
 * their callers spread over the replicas anew. Where there is no room for another, the oldest one ends, and its caller
 * opens another.
 */
import { setTimeout as startTimer } from 'node:timers';
import type { Account } from './accounts.ts';
import type { OpenRequest } from './open-request.ts';
import type { HoldingSettings } from './settings.ts';
import type { HoldingTally } from './tally.ts';

/** The open watches of a port. */
export interface Watches {
  /** Counts a watch, and calls `end` once if the watch must end. Returns a function to call when it is over. */
  open(request: OpenRequest, end: () => void): () => void;
  readonly size: number;
}

interface Watch {
  readonly account: Account;
  readonly end: () => void;
  readonly timer: NodeJS.Timeout;
  over: boolean;
}

/** The watches of a port, none open yet. */
export function createWatches(settings: Pick<HoldingSettings, 'watches' | 'watchTime'>, tally: HoldingTally): Watches {
  /** Oldest first. */
  const all = new Set<Watch>();

  const close = (watch: Watch): void => {
    if (watch.over) return;
    watch.over = true;
    clearTimeout(watch.timer);
    all.delete(watch);
    watch.account.watches -= 1;
  };
  const displace = (fits: (watch: Watch) => boolean): void => {
    for (const watch of all) {
      if (!fits(watch)) continue;
      tally.watchesEnded.displaced += 1;
      close(watch);
      watch.end();
      return;
    }
  };

  return {
    open({ account }, end) {
      if (account.watches >= settings.watches.perAddress) displace((watch) => watch.account === account);
      if (all.size >= settings.watches.total) displace(() => true);
      const timer = startTimer(
        () => {
          tally.watchesEnded.age += 1;
          close(watch);
          end();
        },
        settings.watchTime * (0.9 + Math.random() * 0.2),
      );
      timer.unref();
      const watch: Watch = { account, end, timer, over: false };
      account.watches += 1;
      all.add(watch);
      return () => close(watch);
    },
    get size() {
      return all.size;
    },
  };
}
