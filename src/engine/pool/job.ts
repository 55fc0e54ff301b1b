/** One job on its way through the pool: a decision or a piece of a preparation, its deadline, and who hears of it. */
import type { JobTerms, ScoreJob, ScoreOutcome } from '../engine.ts';
import type { Revision } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import type { ChoiceList } from '../processes/work-in-flight.ts';
import type { JobResult, PrepareMessage, ScoreMessage } from '../worker/messages.ts';
import type { JobShape } from './estimates.ts';
import type { QueueItem } from './fair-queue.ts';

/** What an engine process is asked to do. */
export type Task =
  | Pick<ScoreMessage, 'kind' | 'input' | 'instruction' | 'choices' | 'vector'>
  | Pick<PrepareMessage, 'kind' | 'choices' | 'all'>;

/** A job that is taken in, or about to be. */
export interface Job extends QueueItem {
  readonly id: number;
  readonly revision: Revision;
  readonly task: Task;
  readonly shape: JobShape;
  readonly choiceList: ChoiceList;
  /** The only place where it may run; undefined if it may run anywhere. */
  readonly slot: EngineSlot | undefined;
  readonly arrived: number;
  /** How many engines have failed at it. */
  failures: number;
  /** `running` until the engine is done with it, even if its caller has been answered. */
  state: 'queued' | 'running' | 'over';
  /** Where it runs or ran last. */
  process: EngineProcess | undefined;
  sentAt: number;
  /** Whether the caller has been answered. */
  answered: boolean;
  /** How the caller hears of it: one of the two is called once. */
  readonly answer: PromiseWithResolvers<Answered>;
  /** The call that it belongs to. */
  readonly terms: JobTerms;
}

/** A final result: no other engine is asked for one. */
export type Settled = Exclude<JobResult, { readonly kind: 'failed' }>;

/** A result that a caller hears of. */
export type Answered = Exclude<Settled, { readonly kind: 'unavailable' | 'canceled' }>;

/** What a job is made of. `id` numbers the jobs in the order of their arrival. */
export type NewJob = Pick<
  Job,
  'id' | 'revision' | 'task' | 'shape' | 'choiceList' | 'cost' | 'after' | 'slot' | 'arrived' | 'terms'
> &
  Pick<Part, 'since'>;

/** A job that is one of several of a decision. */
export interface Part {
  /** See `RingItem`: what the next ones take here. */
  readonly after?: number;
  /** When the decision came: of its tenant's jobs, none that came later goes first. */
  readonly since?: number | undefined;
  /** Whether it was admitted with an earlier one, as what came after that. */
  readonly admitted?: boolean;
}

/** A job that waits. */
export function createJob({ since, ...facts }: NewJob): Job {
  const { id, shape, slot, arrived, cost, after, terms } = facts;
  return {
    ...facts,
    sequence: id,
    bytes: 2 * (shape.premiseLength + shape.choicesLength),
    rank: since ?? rankOf(arrived, cost + after, terms),
    // What waits for one engine must not hold up what the others could do for the same tenant.
    tenant: slot === undefined ? terms.tenant : `${terms.tenant}\n${slot.name}`,
    keyed: terms.keyed,
    failures: 0,
    state: 'queued',
    process: undefined,
    sentAt: 0,
    answered: false,
    answer: Promise.withResolvers(),
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

/** The outcome that the caller of a decision gets for an engine's result. */
export function outcomeOf(result: Answered, { arrived, sentAt }: Job): ScoreOutcome {
  if (result.kind === 'prepared') throw new Error('a decision ended as prepared');
  if (result.kind !== 'scored') return result;
  const { probabilities, vector, inputTokens, unread, tokenize, infer, waited } = result;
  const timings = { queue: sentAt - arrived + waited, tokenize, infer };
  return { kind: 'scored', probabilities, vector, inputTokens, unread, timings };
}

/** The task of a decision. */
export function taskOf({ input, instruction, choices, vector = false }: ScoreJob): Task {
  return { kind: 'score', input, instruction, choices, vector };
}
