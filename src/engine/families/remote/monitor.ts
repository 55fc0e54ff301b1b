/** Asks a server regularly whether it is ready, so that its absence is noticed before a decision fails for it. */
import { setTimeout as delay } from 'node:timers/promises';

/** A server that is asked regularly, until `stop`. */
export interface Monitor {
  /** Asks now, in addition to the regular times. */
  hurry(): void;
  stop(): void;
}

/** Milliseconds between two questions, and before the question is repeated after a problem. */
const INTERVAL = 1000;
const AGAIN = 100;

/** `problem` asks once; `gone` is called, and the asking ends, when it has found a problem twice in a row. */
export function startMonitor(problem: () => Promise<string | undefined>, gone: (problem: string) => void): Monitor {
  let stopped = false;
  let asking = false;

  const ask = async (): Promise<void> => {
    if (asking || stopped) return;
    asking = true;
    let found = await problem();
    // One broken connection does not mean that the server is away.
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
