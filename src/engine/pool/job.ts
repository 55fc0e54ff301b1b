/** One decision on its way through the pool: the job, its deadline, and what its caller is told about it. */
import type { JobTerms, ScoreJob, ScoreOutcome } from '../engine.ts';
import type { Revision } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { ChoiceSet } from '../processes/work-in-flight.ts';
import type { JobResult } from '../worker/messages.ts';
import type { JobShape } from './estimates.ts';
import type { QueueItem } from './fair-queue.ts';
import { createHeap } from './heap.ts';

/** A job that was admitted. */
export interface Job extends QueueItem {
  readonly id: number;
  readonly revision: Revision;
  readonly request: ScoreJob;
  readonly shape: JobShape;
  readonly choiceSet: ChoiceSet;
  readonly arrived: number;
  readonly deadline: number;
  /** How many engines have failed at it. */
  failures: number;
  /** `running` until the engine is done with it, even if its caller has been answered. */
  state: 'queued' | 'running' | 'over';
  /** Where it runs or ran last. */
  process: EngineProcess | undefined;
  sentAt: number;
  /** Whether the caller has been answered. */
  answered: boolean;
  readonly answer: Answer;
}

/** How a caller hears of its job. Each function is called at most once, and only one of `resolve` and `reject`. */
export interface Answer {
  resolve(outcome: ScoreOutcome): void;
  reject(error: Error): void;
  /** The job no longer takes up anything. */
  released(): void;
}

/** What a job is made of. */
export interface NewJob
  extends Pick<Job, 'sequence' | 'revision' | 'request' | 'shape' | 'choiceSet' | 'cost' | 'arrived' | 'answer'> {
  readonly terms: JobTerms;
}

/** A job that waits. */
export function createJob({ terms, ...facts }: NewJob): Job {
  const { shape, sequence, arrived, cost } = facts;
  return {
    ...facts,
    id: sequence,
    bytes: 2 * (shape.premiseLength + shape.choicesLength),
    rank: rankOf(arrived, cost, terms),
    tenant: terms.tenant,
    keyed: terms.keyed,
    deadline: terms.deadline,
    failures: 0,
    state: 'queued',
    process: undefined,
    sentAt: 0,
    answered: false,
  };
}

/** How long shorter jobs may pass a longer one, in multiples of its cost. */
const PATIENCE = 2;

/**
 * The rank of a job among its tenant's: short ones come first, but none waits for ever. A job ranks as one without cost
 * that arrived `PATIENCE` × cost later; that delay is at most a quarter of the time that the job can wait.
 */
export function rankOf(arrived: number, cost: number, { deadline }: Pick<JobTerms, 'deadline'>): number {
  return arrived + Math.min(PATIENCE * cost, Math.max(0, deadline - arrived - cost) / 4);
}

/** Something that is worthless after `deadline`, milliseconds on the clock of `performance.now()`. */
export interface Due {
  readonly deadline: number;
}

/** The deadlines being watched. */
export interface Deadlines<T extends Due> {
  add(item: T): void;
  remove(item: T): void;
  readonly size: number;
}

// The longest delay that a timer takes, milliseconds.
const MAX_TIMER = 2 ** 31 - 1;

/**
 * Calls `passed` once for every item whose deadline passes before it is removed; the item is then no longer watched.
 */
export function createDeadlines<T extends Due>(passed: (item: T) => void): Deadlines<T> {
  const heap = createHeap<T>((a, b) => a.deadline < b.deadline);
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;

  const arm = (): void => {
    const next = heap.peek()?.deadline ?? Number.POSITIVE_INFINITY;
    // A timer that fires too early for its successor costs one wake-up; setting it anew for every job would cost more.
    if (next >= timerAt) return;
    clearTimeout(timer);
    timerAt = next;
    timer = setTimeout(fire, Math.min(MAX_TIMER, Math.max(0, Math.ceil(next - performance.now()))));
  };

  const fire = (): void => {
    timerAt = Number.POSITIVE_INFINITY;
    timer = undefined;
    const now = performance.now();
    for (let first = heap.peek(); first !== undefined && first.deadline <= now; first = heap.peek()) {
      heap.pop();
      passed(first);
    }
    arm();
  };

  return {
    add(item) {
      heap.push(item);
      arm();
    },
    remove(item) {
      heap.remove(item);
      if (heap.size > 0) return;
      // Nothing to wait for: the timer must not keep the process alive.
      clearTimeout(timer);
      timerAt = Number.POSITIVE_INFINITY;
    },
    get size() {
      return heap.size;
    },
  };
}

/** A final result: no other engine is asked for one. */
export type Settled = Exclude<JobResult, { readonly kind: 'failed' }>;

/** The outcome that the caller gets for an engine's result. */
export function outcomeOf(result: Exclude<Settled, { kind: 'unavailable' | 'canceled' }>, job: Job): ScoreOutcome {
  if (result.kind === 'scored') {
    const { probabilities, vector, inputTokens, unread, tokenize, infer, waited } = result;
    return {
      kind: 'scored',
      probabilities,
      vector,
      inputTokens,
      unread,
      timings: { queue: job.sentAt - job.arrived + waited, tokenize, infer },
    };
  }
  if (result.kind === 'input_too_long' || result.kind === 'choice_too_long') return result;
  // A decision never ends as prepared.
  throw new Error(`a decision ended as ${result.kind}`);
}
