/**
 * How the life of a process ends and the next one begins: why it ended, what that says of its job, how long to wait
 * before it is started again, and when it is replaced for its size.
 *
 * A process is replaced when it is still too large after it has given back what it does not use. A large request makes
 * it larger for moments. A new process is no smaller than the models that it loads: where these alone are above the
 * limit, only what comes on top of them counts.
 */
import { readFileSync } from 'node:fs';

/** What is known of a process. */
export interface ProcessSize {
  /** Resident bytes now. */
  readonly resident: number;
  /** Resident bytes when its last model had made its canary decision; undefined where its models changed since. */
  readonly loaded: number | undefined;
  /** Milliseconds since its start. */
  readonly lived: number;
  /** Whether it has just given back what it does not use. */
  readonly released: boolean;
}

/** How large a process may grow whose models alone are above the limit, in sizes that it had with these alone. */
const GROWTH = 1.25;
/** The longest wait between two replacements, in first waits. */
const LONGEST_WAIT = 16;
/** Milliseconds between two times that a process gives memory back, which takes tens of milliseconds. */
const BETWEEN_RELEASES = 5000;

/** The replacements of one slot. */
export class Recycling {
  readonly #limit: number;
  readonly #firstWait: number;
  #wait: number;
  #last = Number.NEGATIVE_INFINITY;
  #lastRelease = Number.NEGATIVE_INFINITY;

  /** `limit` in bytes; `firstWait`, in milliseconds, is also how long a process has to live before it is replaced. */
  constructor(limit: number, firstWait: number) {
    this.#limit = limit;
    this.#firstWait = firstWait;
    this.#wait = firstWait;
  }

  /**
   * What is to be done about the size of a process, `now` in milliseconds: it gives back what it does not use, or is
   * replaced. Each replacement that follows soon after the previous one makes the wait for the next one longer.
   */
  due({ resident, loaded, lived, released }: ProcessSize, now: number): 'nothing' | 'release' | 'replacement' {
    const bound = loaded !== undefined && loaded > this.#limit ? loaded * GROWTH : this.#limit;
    const since = now - this.#last;
    if (resident <= bound || lived < this.#wait || since < this.#wait) return 'nothing';
    if (!released) {
      if (now - this.#lastRelease < BETWEEN_RELEASES) return 'nothing';
      this.#lastRelease = now;
      return 'release';
    }
    // A replacement that helped would not be needed again so soon.
    this.#wait = since < 2 * this.#wait ? Math.min(2 * this.#wait, LONGEST_WAIT * this.#firstWait) : this.#firstWait;
    this.#last = now;
    return 'replacement';
  }
}

/**
 * `stuck`: killed because it made no progress; `crashed`: by itself; `killed`: somebody else sent SIGKILL or SIGTERM
 * (an operator, or the system when memory runs out); `drained`: it was told to end.
 */
export type DeathCause = 'stuck' | 'crashed' | 'killed' | 'drained';

/** How a process ended. */
export interface Death {
  readonly cause: DeathCause;
  /** Why it ended, in words for the log. */
  readonly reason: string;
}

/** The death of a process that made no progress. */
export const STUCK: Death = { cause: 'stuck', reason: 'killed: it made no progress' };

/** The death of a process that was told to end, had nothing else to do, and did not. */
export const OVERDUE: Death = { cause: 'drained', reason: 'killed: it did not end in time' };

/** The death behind a child process's `exit` event. `asked`: why its owner killed it, if it did. */
export function deathOf(code: number | null, signal: NodeJS.Signals | null, asked: Death | undefined): Death {
  if (asked !== undefined) return asked;
  if (signal === null) {
    return { cause: code === 0 ? 'drained' : 'crashed', reason: `exited with code ${code}` };
  }
  const foreign = signal === 'SIGKILL' || signal === 'SIGTERM';
  return { cause: foreign ? 'killed' : 'crashed', reason: `ended by ${signal}` };
}

/** Whether the job that was running may have ended the process. */
export function blamesJob({ cause }: Death): boolean {
  return cause === 'stuck' || cause === 'crashed';
}

/** A process at one moment. */
export interface ProcessUsage {
  /** Whether its main thread runs or waits for a core; otherwise it sleeps or is stopped. */
  readonly runnable: boolean;
  /** CPU time of all its threads so far, milliseconds. */
  readonly cpu: number;
}

// The unit of CPU times in /proc, whatever unit the kernel itself uses.
const TICKS_PER_SECOND = 100;

/** The usage of a process now; undefined where there is no /proc, or no such process. */
export function processUsage(pid: number): ProcessUsage | undefined {
  try {
    // The name in parentheses may hold anything; the fields after it are plain.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { runnable: fields[0] === 'R', cpu: ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND };
  } catch {
    return undefined;
  }
}

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
