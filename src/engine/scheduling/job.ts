/** One decision on its way through the pool. */
import type { JobTerms, ScoreJob, ScoreOutcome } from '../engine.ts';
import type { Revision } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { ChoiceSet } from '../processes/known-choice-sets.ts';
import type { JobShape } from './estimates.ts';
import type { QueueItem } from './fair-queue.ts';

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
