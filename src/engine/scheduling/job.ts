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
  /** `running` until the engine is done with it, also when its caller has been answered. */
  state: 'queued' | 'running' | 'over';
  /** Where it runs or ran last. */
  process: EngineProcess | undefined;
  sentAt: number;
  /** Whether the caller has been answered. */
  answered: boolean;
  readonly answer: Answer;
}

/** The caller's end of a job: each is called at most once, and one of the first two. */
export interface Answer {
  resolve(outcome: ScoreOutcome): void;
  reject(error: Error): void;
  /** The job takes up nothing any more. */
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

/** How long short jobs may pass a longer one, in multiples of its cost. */
const PATIENCE = 2;

/**
 * The place of a job among its tenant's: short ones first, with ageing. A job stands where one of no cost would stand
 * that arrived `patience` × cost later, but no later than leaves it three quarters of its time.
 */
export function rankOf(arrived: number, cost: number, { deadline }: Pick<JobTerms, 'deadline'>): number {
  return arrived + Math.min(PATIENCE * cost, Math.max(0, deadline - arrived - cost) / 4);
}
