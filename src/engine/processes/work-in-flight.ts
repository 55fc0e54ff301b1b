/**
 * The jobs that a process was sent and has not finished, and how long they will still take. Which sets of choices it
 * has encoded is an estimate, for costs only.
 */
import { hash } from 'node:crypto';
import type { CallerTerms } from '../engine.ts';

/** Jobs in flight. Times on the clock of `performance.now()`, milliseconds. */
export interface WorkInFlight {
  readonly size: number;
  /** Adds a job that takes `cost` by its estimate. */
  add(job: number, cost: number, now: number): void;
  /** Removes a job. Returns for how long it kept the process from the next one. */
  finish(job: number, now: number): number;
  /** What the jobs will still take, by their estimates: all of them together. */
  remaining(now: number): number;
  /** Removes all, and returns them in the order in which they were added. */
  clear(): readonly number[];
}

/**
 * The work of a process that does one job at a time, in the order in which they were sent, unless one passes the first.
 */
export function createSerialWork(): WorkInFlight {
  const jobs = new Map<number, { readonly cost: number; readonly since: number }>();
  /** When the first of them began to occupy the process, later by the time of the jobs that passed it. */
  let headSince = 0;
  let lastFinish = 0;
  return {
    get size() {
      return jobs.size;
    },
    add(job, cost, now) {
      if (jobs.size === 0) headSince = now;
      jobs.set(job, { cost, since: now });
    },
    finish(job, now) {
      const [head] = jobs.keys();
      const passed = head !== job;
      const since = passed ? Math.max(jobs.get(job)?.since ?? now, lastFinish) : headSince;
      const occupied = now - since;
      jobs.delete(job);
      headSince = passed ? headSince + occupied : now;
      lastFinish = now;
      return occupied;
    },
    remaining(now) {
      if (jobs.size === 0) return 0;
      let sum = 0;
      for (const { cost } of jobs.values()) sum += cost;
      return Math.max(0, sum - (now - headSince));
    },
    clear() {
      const all = [...jobs.keys()];
      jobs.clear();
      return all;
    },
  };
}

/** The work of a process that does several jobs at the same time. */
export function createConcurrentWork(): WorkInFlight {
  const jobs = new Map<number, { readonly cost: number; readonly since: number }>();
  return {
    get size() {
      return jobs.size;
    },
    add: (job, cost, now) => void jobs.set(job, { cost, since: now }),
    finish(job, now) {
      const since = jobs.get(job)?.since ?? now;
      jobs.delete(job);
      return now - since;
    },
    remaining(now) {
      let sum = 0;
      for (const { cost, since } of jobs.values()) sum += Math.max(0, cost - (now - since));
      return sum;
    },
    clear() {
      const all = [...jobs.keys()];
      jobs.clear();
      return all;
    },
  };
}

/** A list of choices as an engine process may have it in its cache. */
export interface ChoiceSet {
  /** The key of the loaded revision. */
  readonly key: string;
  /** Who shares what is cached, see `cachePart`. */
  readonly part: string;
  /**
   * The digest of the list. Two lists could have the same one only by accident or intent, which spoils an estimate at
   * most.
   */
  readonly digest: string;
}

/** The choice set of a caller's list at one model. */
export function choiceSetOf(key: string, choices: readonly string[], caller: CallerTerms): ChoiceSet {
  return { key, part: cachePart(caller), digest: hash('sha1', choices.join('\n'), 'base64') };
}

/**
 * Who shares what engines cache: a key's owner with nobody, callers without a key with each other. How long a decision
 * takes tells whether its choices were cached, so what one owner sends must make nobody else's decision faster.
 */
function cachePart({ tenant, keyed }: CallerTerms): string {
  return keyed ? tenant : '';
}

/** The sets that one engine process is likely to have in its cache. */
export interface KnownChoiceSets {
  has(set: ChoiceSet): boolean;
  add(set: ChoiceSet): void;
  remove(set: ChoiceSet): void;
}

/** Sets that are remembered for one process. */
const MAX_SETS = 2048;

/** No sets at first; remembers those that were used last. */
export function createKnownChoiceSets(): KnownChoiceSets {
  const sets = new Set<string>();
  const nameOf = ({ key, part, digest }: ChoiceSet): string => `${key} ${digest} ${part}`;
  return {
    has: (set) => sets.has(nameOf(set)),
    add(set) {
      const name = nameOf(set);
      sets.delete(name);
      sets.add(name);
      const [oldest] = sets;
      if (sets.size > MAX_SETS && oldest !== undefined) sets.delete(oldest);
    },
    remove: (set) => sets.delete(nameOf(set)),
  };
}
