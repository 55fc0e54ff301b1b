/**
 * Watches the serving process itself: its memory and the delay of its event loop. Near a bound it lets go of idle connections, nearer still it
 * refuses work, so that what was accepted is finished instead of all being lost together.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { memoryUsage } from 'node:process';

/** The share of a bound at which idle connections are closed, and the one at which work is refused. */
export const IDLE_AT = 0.92;
export const REFUSE_AT = 0.95;

/** Milliseconds of mean event-loop delay that count as the bound: every request waits several times that. */
const MAX_LOOP_DELAY = 500;
/** Milliseconds between looks. */
const INTERVAL = 500;

/** What is measured; tests bring their own. */
export interface Vitals {
  /** Resident bytes of the process. */
  memory(): number;
  /** Mean delay of the event loop since the last look, milliseconds. */
  loopDelay(): number;
  close(): void;
}

export interface Watchdog {
  /** Whether new work must be refused now. */
  readonly refusing: boolean;
  /** Looks now, beside the looks that it takes by itself. */
  look(): void;
  close(): void;
}

/** The process's own vitals. */
export function processVitals(): Vitals {
  const histogram = monitorEventLoopDelay({ resolution: 10 });
  histogram.enable();
  return {
    memory: () => memoryUsage.rss(),
    loopDelay() {
      // The histogram counts the timer's own resolution as delay; an empty one has no mean.
      const mean = histogram.count === 0 ? 0 : histogram.mean / 1e6 - 10;
      histogram.reset();
      return Math.max(0, mean);
    },
    close: () => histogram.disable(),
  };
}

/** A watchdog that looks twice a second. `closeIdle` lets go of connections; `changed` is told when refusing begins and ends. */
export function createWatchdog(options: {
  /** Resident bytes. */
  readonly memoryLimit: number;
  readonly vitals: Vitals;
  readonly closeIdle: () => void;
  readonly changed: (refusing: boolean, vitals: { readonly memory: number; readonly loopDelayMs: number }) => void;
}): Watchdog {
  const { memoryLimit, vitals, closeIdle, changed } = options;
  let refusing = false;
  const look = (): void => {
    const memory = vitals.memory();
    const loopDelayMs = vitals.loopDelay();
    const pressure = Math.max(memory / memoryLimit, loopDelayMs / MAX_LOOP_DELAY);
    if (pressure >= IDLE_AT) closeIdle();
    if (pressure >= REFUSE_AT === refusing) return;
    refusing = !refusing;
    changed(refusing, { memory, loopDelayMs });
  };
  const timer = setInterval(look, INTERVAL);
  timer.unref();
  return {
    get refusing() {
      return refusing;
    },
    look,
    close() {
      clearInterval(timer);
      vitals.close();
    },
  };
}
