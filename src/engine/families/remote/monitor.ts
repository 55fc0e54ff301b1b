/**
 * Asks a server again and again whether it is ready, so that one which goes away is noticed before a
 * decision is lost to it.
 */
import { setTimeout as delay } from 'node:timers/promises';

/** A server that is asked again and again, until `stop`. */
export interface Monitor {
  /** Asks now, beside the usual times. */
  hurry(): void;
  stop(): void;
}

/** Milliseconds between two questions, and before the second one where the first found a problem. */
const INTERVAL = 1000;
const AGAIN = 100;

/** `problem` asks once; `gone` is called, and the asking ends, when it found a problem twice in a row. */
export function startMonitor(problem: () => Promise<string | undefined>, gone: (problem: string) => void): Monitor {
  let stopped = false;
  let asking = false;

  const ask = async (): Promise<void> => {
    if (asking || stopped) return;
    asking = true;
    let found = await problem();
    // A single connection that broke is not a server that is away.
    if (found !== undefined && !stopped) {
      await delay(AGAIN);
      found = await problem();
    }
    asking = false;
    if (found === undefined || stopped) return;
    stop();
    gone(found);
  };

  const timer = setInterval(() => void ask(), INTERVAL);
  const stop = (): void => {
    stopped = true;
    clearInterval(timer);
  };
  return { hurry: () => void ask(), stop };
}
