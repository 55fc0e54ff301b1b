/**
 * Streams that are meant to stay open: they are counted for each address and in all, and end after a while, so that
 * their callers spread over the replicas anew. Where there is no room for another, the oldest of the address that has
 * most end, and their caller opens others.
 */
import { setTimeout as startTimer } from 'node:timers';
import type { OpenRequest } from './open-request.ts';
import { Places } from './places.ts';
import type { HoldingSettings } from './settings.ts';
import type { HoldingTally } from './tally.ts';

interface Watch {
  readonly openedAt: number;
  readonly end: () => void;
  readonly timer: NodeJS.Timeout;
}

/** The open watches of a port. */
export class Watches {
  readonly #watchTime: number;
  readonly #tally: HoldingTally;
  readonly #places: Places<Watch>;

  constructor({ watches, watchTime }: Pick<HoldingSettings, 'watches' | 'watchTime'>, tally: HoldingTally) {
    this.#watchTime = watchTime;
    this.#tally = tally;
    this.#places = new Places({
      bound: watches,
      spareSince: ({ openedAt }) => openedAt,
      giveUp: ({ timer, end }) => {
        tally.watchesEnded.displaced += 1;
        clearTimeout(timer);
        end();
      },
    });
  }

  get size(): number {
    return this.#places.size;
  }

  /** Counts a watch, and calls `end` once if the watch must end. Returns a function to call when it is over. */
  open({ account }: OpenRequest, end: () => void): () => void {
    const openedAt = performance.now();
    // Every watch can be given up, so there is room.
    this.#places.hasOwn(account, openedAt);
    this.#places.has(account, openedAt);
    const timer = startTimer(
      () => {
        if (!this.#places.give(account, watch)) return;
        this.#tally.watchesEnded.age += 1;
        end();
      },
      this.#watchTime * (0.9 + Math.random() * 0.2),
    );
    timer.unref();
    const watch: Watch = { openedAt, end, timer };
    this.#places.take(account, watch);
    return () => {
      clearTimeout(timer);
      this.#places.give(account, watch);
    };
  }
}
