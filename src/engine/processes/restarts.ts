/** How long to wait before an engine that ended is started again. */

/** The life of the engine that ended. */
export interface EngineLife {
  /** Whether it had loaded a model. */
  readonly served: boolean;
  /** Milliseconds from its start to its end. */
  readonly lived: number;
}

/** The first wait, milliseconds; it doubles with each short life up to one of the two below. */
const FIRST = 100;
const LONGEST_AFTER_SERVICE = 1000;
const LONGEST_OTHERWISE = 30_000;
/** After this many milliseconds the end of a process that served is not blamed on how it was started. */
const CALM = 10_000;

/**
 * The delay in milliseconds; `previous` is the last one, 0 if there was none. A process that had served is started
 * again soon even if it is killed again and again; one that never got that far is tried less and less often.
 */
export function restartDelay({ served, lived }: EngineLife, previous: number): number {
  if (served && lived >= CALM) return FIRST;
  return Math.min(served ? LONGEST_AFTER_SERVICE : LONGEST_OTHERWISE, Math.max(FIRST, previous * 2));
}

/** Waits before the next start, longer with every short life. */
export class RestartTimer {
  #delay = 0;
  #at = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** Milliseconds until the start that was scheduled last; 0 if it is past. */
  get remaining(): number {
    return Math.max(0, this.#at - performance.now());
  }

  /** Calls `start` after the delay that follows a process with this life. */
  schedule(life: EngineLife, start: () => void): void {
    this.#delay = restartDelay(life, this.#delay);
    this.#at = performance.now() + this.#delay;
    this.#timer = setTimeout(start, this.#delay);
  }

  /** Forgets earlier lives, so that the next delay is the shortest. */
  reset(): void {
    this.#delay = 0;
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}
