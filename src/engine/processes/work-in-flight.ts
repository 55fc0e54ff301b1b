/**
 * The jobs that a process was sent and has not finished, and how long they will still take. Which sets of choices it
 * has encoded is an estimate, for costs only.
 */
import { hash } from 'node:crypto';
import type { JobTerms } from '../engine.ts';

/**
 * Jobs in flight, none at first. A process that does one at a time does them in the order in which they were sent,
 * unless one passes the first. Times on the clock of `performance.now()`, milliseconds.
 */
export class WorkInFlight {
  readonly #serial: boolean;
  readonly #jobs = new Map<number, { readonly cost: number; readonly since: number }>();
  /** When the first of them began to occupy the process, later by the time of the jobs that passed it. */
  #headSince = 0;
  #lastFinish = 0;

  /** `concurrency`: jobs that the process does at a time. */
  constructor(concurrency: number) {
    this.#serial = concurrency === 1;
  }

  get size(): number {
    return this.#jobs.size;
  }

  /** Adds a job that takes `cost` by its estimate. */
  add(job: number, cost: number, now: number): void {
    if (this.#jobs.size === 0) this.#headSince = now;
    this.#jobs.set(job, { cost, since: now });
  }

  /** Removes a job. Returns for how long it kept the process from the next one. */
  finish(job: number, now: number): number {
    const [head] = this.#jobs.keys();
    const sent = this.#jobs.get(job)?.since ?? now;
    this.#jobs.delete(job);
    if (!this.#serial) return now - sent;
    const passed = head !== job;
    const occupied = now - (passed ? Math.max(sent, this.#lastFinish) : this.#headSince);
    this.#headSince = passed ? this.#headSince + occupied : now;
    this.#lastFinish = now;
    return occupied;
  }

  /** What the jobs will still take, by their estimates: all of them together. */
  remaining(now: number): number {
    let sum = 0;
    for (const { cost, since } of this.#jobs.values()) sum += this.#serial ? cost : Math.max(0, cost - (now - since));
    return this.#serial && sum > 0 ? Math.max(0, sum - (now - this.#headSince)) : sum;
  }

  /** Removes all, and returns them in the order in which they were added. */
  clear(): readonly number[] {
    const all = [...this.#jobs.keys()];
    this.#jobs.clear();
    return all;
  }
}

/** A list of choices as an engine process may have it in its cache. */
export interface ChoiceList {
  /** The key of the loaded revision. */
  readonly key: string;
  /**
   * Who shares what engines cache: a key's owner with nobody, callers without a key with each other. How long a
   * decision takes tells whether its choices were cached, so what one owner sends must make nobody else's decision
   * faster.
   */
  readonly part: string;
  /**
   * Tells it from others. Two lists could have the same name only by accident or intent, which spoils an estimate at
   * most.
   */
  readonly name: string;
}

/** The choices of a caller's list at one model. */
export function choiceListOf(
  key: string,
  choices: readonly string[],
  { tenant, keyed }: Pick<JobTerms, 'tenant' | 'keyed'>,
): ChoiceList {
  const part = keyed ? tenant : '';
  return { key, part, name: `${key} ${hash('sha1', choices.join('\n'), 'base64')} ${part}` };
}
