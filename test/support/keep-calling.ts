/** Callers that keep on calling, and what became of every call. */
import { setTimeout as sleep } from 'node:timers/promises';

/** What many callers do, over and over. */
export interface Calls {
  readonly name: string;
  /** At one time. */
  readonly callers: number;
  /** Milliseconds that each waits after an answer. */
  readonly pause: number;
  /**
   * One call. Resolves to undefined if it was answered as it should be, else to what was wrong; a
   * rejection is wrong, too.
   */
  call(turn: number): Promise<string | undefined>;
}

/** What became of them. `sent` is always `answered` and all of `failed` together once the callers have stopped. */
export interface Tally {
  readonly name: string;
  readonly sent: number;
  readonly answered: number;
  readonly failed: number;
  /** How often each thing went wrong. */
  readonly faults: Readonly<Record<string, number>>;
  /** Milliseconds of the longest call. */
  readonly longest: number;
}

/**
 * Starts them all. `stop` lets each finish the call that it is in, and may be called again: what starts them must see
 * to it that they end when it fails, too.
 */
export function keepCalling(all: readonly Calls[]): { stop(): Promise<readonly Tally[]> } {
  let stopped = false;
  const tallies = all.map(async ({ name, callers, pause, call }): Promise<Tally> => {
    const tally = { sent: 0, answered: 0, failed: 0, longest: 0 };
    const faults: Record<string, number> = {};
    const work = async (): Promise<void> => {
      while (!stopped) {
        const started = performance.now();
        const fault = await call(tally.sent++).catch((error: unknown) => String(error));
        tally.longest = Math.max(tally.longest, performance.now() - started);
        if (fault === undefined) tally.answered++;
        else {
          tally.failed++;
          faults[fault] = (faults[fault] ?? 0) + 1;
        }
        await sleep(pause);
      }
    };
    await Promise.all(Array.from({ length: callers }, work));
    return { name, ...tally, faults };
  });
  return {
    stop() {
      stopped = true;
      return Promise.all(tallies);
    },
  };
}
