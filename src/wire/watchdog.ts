/**
 * Watches the serving process itself: its memory and the delay of its event loop. Near a bound it closes idle
 * connections, nearer still it refuses work, so that accepted work is finished and not all of it lost at once. Callers
 * with a key are refused last: requests without one may come from anybody.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { memoryUsage } from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Refused } from '../domain/gate.ts';
import type { Logger } from '../logger.ts';

/** The share of a bound at which idle connections are closed, and garbage is collected if it is that of memory. */
const IDLE_AT = 0.92;
/** The share of a bound at which callers without a key are refused. */
const REFUSE_AT = 0.95;
/** The share of the bound of memory at which all callers are refused. */
const REFUSE_ALL_AT = 1;

/** Milliseconds of mean event-loop delay that count as the bound: every request waits several times that. */
const MAX_LOOP_DELAY = 500;
/** The share of that bound at which all are refused: by then those without a key have been refused for a while. */
const REFUSE_ALL_AT_DELAY = 2;
/** Milliseconds between looks. */
const INTERVAL = 500;

/** What is measured; tests supply their own. */
export interface Vitals {
  /** Resident bytes of the process. */
  memory(): number;
  /** Mean delay of the event loop since the last call, in milliseconds. */
  loopDelay(): number;
  close(): void;
}

/** Vitals that are never near a bound: for a service that must not depend on how busy the machine is. */
export const CALM_VITALS: Vitals = { memory: () => 0, loopDelay: () => 0, close() {} };

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

/** What a watchdog watches, and where it says whose work is refused. */
export interface WatchdogOptions {
  /** Resident bytes near which work is refused. */
  readonly memoryLimit: number;
  readonly vitals: Vitals;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

/** Looks at the process twice a second, from `start` to `close`. */
export class Watchdog {
  readonly #options: WatchdogOptions;
  /** Whose new work must be refused now. */
  refused: Refused = 'nobody';
  readonly #collector = new Collector();
  #lastDelayMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #closeIdle: (() => void) | undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** Begins. `closeIdle` closes idle connections. */
  start(closeIdle: () => void): void {
    this.#closeIdle = closeIdle;
    this.#timer = setInterval(() => this.look(), INTERVAL);
    this.#timer.unref();
  }

  /** Looks now, in addition to the regular looks. */
  look(): void {
    const { memoryLimit, vitals, logger } = this.#options;
    const memory = vitals.memory();
    const delayMs = vitals.loopDelay();
    // A single delay is over when it is seen, and what came meanwhile can be answered: only one that lasts counts.
    const loopDelayMs = Math.min(this.#lastDelayMs, delayMs);
    this.#lastDelayMs = delayMs;
    const [size, delay] = [memory / memoryLimit, loopDelayMs / MAX_LOOP_DELAY];
    const pressure = Math.max(size, delay);
    if (pressure >= IDLE_AT) this.#closeIdle?.();
    if (size >= IDLE_AT) this.#collector.collect();
    const all = size >= REFUSE_ALL_AT || delay >= REFUSE_ALL_AT_DELAY;
    const now = all ? 'everybody' : pressure >= REFUSE_AT ? 'anonymous' : 'nobody';
    if (now === this.refused) return;
    this.refused = now;
    const fields = { memory, loopDelayMs, refused: now };
    if (now === 'nobody') logger.info(fields, 'within the bounds again: work is accepted');
    else logger.warn(fields, 'near the bounds of memory or of the event loop: work is refused');
  }

  close(): void {
    clearInterval(this.#timer);
    this.#options.vitals.close();
  }
}

// Collects garbage near the bound of memory. V8 collects when it allocates, and a process that refuses work allocates
// next to nothing: it would go on refusing long after the cause is gone. An ordinary collection keeps most of what it
// frees in V8's own pool; a collection of last resort returns it to the system.

/**
 * The least milliseconds between collections, and the least pause as a multiple of what the last one took: collecting
 * must not become the main work.
 */
const COLLECTION_INTERVAL = 3000;
const SHARE = 6;

type Collect = (options: {
  readonly type: 'major';
  readonly execution: 'sync';
  readonly flavor: 'last-resort';
}) => void;

/** Returns memory to the system, but never more often than every three seconds. */
export class Collector {
  #next = 0;
  #collect: Collect | undefined;

  /** Collects now, if it is time; returns whether it was. */
  collect(): boolean {
    const began = performance.now();
    if (began < this.#next) return false;
    this.#collect ??= exposed();
    this.#collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const ended = performance.now();
    this.#next = ended + Math.max(COLLECTION_INTERVAL, SHARE * (ended - began));
    return true;
  }
}

/** V8's own function, which a context has that is created while the flag is set. */
function exposed(): Collect {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return collect;
}
