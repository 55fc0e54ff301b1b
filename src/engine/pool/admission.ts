/**
 * How a decision becomes a job: its model must be served, its cost is estimated, and it is taken into the queue if it
 * can probably be done in time and the queue has room. In a flood most requests are refused before they are read.
 */
import type { CallerTerms, JobTerms, ScoreJob } from '../engine.ts';
import {
  DeadlineTooShort,
  EngineClosing,
  EngineOverloaded,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
  retryAfterOf,
} from '../errors.ts';
import type { EngineSettings } from '../options.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import { choiceSetOf } from '../processes/work-in-flight.ts';
import { type Estimates, shapeOf } from './estimates.ts';
import type { Backlog, FairQueue } from './fair-queue.ts';
import { type Answer, createJob, type Job } from './job.ts';

/** Callers without a key may fill this part of the queue, in jobs, bytes and time. */
const ANONYMOUS_SHARE = 0.8;

/** Milliseconds that an engine typically takes from its start to its first decision. */
const TYPICAL_START = 1500;

/**
 * The most that a decision which has not been read is assumed to cost, as a part of the time that its caller has left.
 */
const UNREAD_SHARE = 0.01;

/** The queue and the job that may join it. Costs and times in milliseconds. */
export interface AdmissionCase {
  readonly keyed: boolean;
  /** The bytes of the job's texts. */
  readonly bytes: number;
  /** What the job takes on one engine. */
  readonly cost: number;
  /** Cost that is served before the job or with it, on all engines together: queued and in flight. */
  readonly ahead: number;
  /** Jobs that the serving engines work on at a time, at least 1. */
  readonly atOnce: number;
  /** The time until an engine serves, if none does now. */
  readonly outage: number;
  /** The time until the job's deadline. */
  readonly timeLeft: number;
  readonly all: Backlog;
  readonly anonymous: Backlog;
  readonly maxJobs: number;
  readonly maxBytes: number;
}

/** Admitted, or refused with the whole seconds until it would probably be admitted, at least 1. */
export type Verdict = { readonly kind: 'admitted' } | { readonly kind: 'refused'; readonly retryAfter: number };

/** Admits a job if it can probably be done before its deadline and the queue has room for it. */
export function admit(job: AdmissionCase): Verdict {
  const { keyed, bytes, cost, ahead, atOnce, outage, timeLeft, all, anonymous, maxJobs, maxBytes } = job;
  const share = keyed ? 1 : ANONYMOUS_SHARE;
  const wait = outage + ahead / atOnce;
  const room = share * (timeLeft - cost);
  if (wait > room || cost > timeLeft) return refused(wait - Math.max(0, room));
  const hasRoom = (backlog: Backlog, part: number): boolean =>
    backlog.jobs + 1 <= part * maxJobs && backlog.bytes + bytes <= part * maxBytes;
  if (!hasRoom(all, 1) || (!keyed && !hasRoom(anonymous, ANONYMOUS_SHARE))) return refused(wait / 2);
  return { kind: 'admitted' };
}

function refused(milliseconds: number): Verdict {
  return { kind: 'refused', retryAfter: retryAfterOf(milliseconds) };
}

/** The admission of one queue. */
export interface Admission {
  /**
   * @throws EngineOverloaded if the job cannot be done in time by these engines, or has no place in the queue;
   * DeadlineTooShort if not even an idle engine could do it in time.
   */
  admit(job: Job, engines: readonly EngineProcess[], arrived: number): void;
  /** See `Engine.crowded`. */
  crowded(terms: CallerTerms): number | undefined;
}

type Newcomer = Pick<AdmissionCase, 'keyed' | 'bytes' | 'cost' | 'timeLeft'> & Pick<CallerTerms, 'tenant'>;

/** The admission before a queue whose jobs go to the processes of these slots. */
export function createAdmission(
  settings: Pick<EngineSettings, 'queueJobs' | 'queueBytes'>,
  queue: Pick<FairQueue<Job>, 'backlog' | 'costAhead'>,
  slots: readonly EngineSlot[],
): Admission {
  const refusals = createRecentRefusals();

  const judge = (newcomer: Newcomer, engines: readonly EngineProcess[]): Verdict => {
    const outage = engines.length > 0 ? 0 : Math.min(...slots.map(({ restartsIn }) => restartsIn)) + TYPICAL_START;
    const inFlight = engines.reduce((sum, process) => sum + process.remaining(), 0);
    const atOnce = engines.reduce((sum, { concurrency }) => sum + concurrency, 0);
    return admit({
      ...newcomer,
      ahead: inFlight + queue.costAhead(newcomer.tenant, newcomer.keyed, 0),
      atOnce: Math.max(1, atOnce),
      outage,
      all: queue.backlog('all'),
      anonymous: queue.backlog('anonymous'),
      maxJobs: settings.queueJobs,
      maxBytes: settings.queueBytes,
    });
  };

  return {
    admit({ keyed, bytes, cost, tenant, deadline }, engines, arrived) {
      const timeLeft = deadline - arrived;
      // A job that takes too long by itself says nothing about the load: it is no overload, and no sign of a flood.
      if (cost > timeLeft) throw new DeadlineTooShort(cost, timeLeft);
      const verdict = judge({ keyed, bytes, cost, tenant, timeLeft }, engines);
      if (verdict.kind === 'admitted') return;
      refusals.note(cost, arrived);
      throw new EngineOverloaded(verdict.retryAfter);
    },
    crowded({ tenant, keyed, deadline }) {
      const engines = slots.flatMap(({ process }) => process ?? []);
      const now = performance.now();
      const cheapest = refusals.cheapest(now);
      const timeLeft = deadline - now;
      if (cheapest === undefined || timeLeft <= 0) return undefined;
      const cost = Math.min(cheapest, UNREAD_SHARE * timeLeft);
      const verdict = judge({ keyed, bytes: 0, cost, tenant, timeLeft }, engines);
      return verdict.kind === 'refused' ? verdict.retryAfter : undefined;
    },
  };
}

/** What an intake works with. */
export interface IntakeOptions {
  readonly revisions: Pick<Revisions, 'find'>;
  readonly estimates: Estimates;
  readonly admission: Admission;
  /** The engines that have a revision loaded. */
  serving(revision: Revision): readonly EngineProcess[];
  /** The number of a new job, by which messages to engine processes name it. */
  nextJob(): number;
}

/** The intake of a pool: `open`, and `closed` once it takes no more. */
export class Intake {
  readonly #options: IntakeOptions;
  #state: 'open' | 'closed' = 'open';

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  close(): void {
    this.#state = 'closed';
  }

  /**
   * The revision that a request is for.
   * @throws EngineClosing, JobCanceled, JobDeadlinePassed or ModelUnavailable if it cannot be taken in.
   */
  accept(request: Pick<ScoreJob, 'model' | 'revision'>, terms: JobTerms, arrived: number): Revision {
    if (this.#state === 'closed') throw new EngineClosing();
    if (terms.signal.aborted) throw new JobCanceled();
    if (terms.deadline <= arrived) throw new JobDeadlinePassed();
    const revision = this.#options.revisions.find(request.model, request.revision);
    if (revision?.state === 'ready') return revision;
    throw new ModelUnavailable(`${request.model}@${request.revision} is not served now`, 1);
  }

  /** A new job, admitted. If it is refused, `answer.released` is called before the error is thrown. */
  takeIn(request: ScoreJob, terms: JobTerms, answer: Answer): Job {
    const { estimates, admission, serving, nextJob } = this.#options;
    try {
      const arrived = performance.now();
      const revision = this.accept(request, terms, arrived);
      const engines = serving(revision);
      const shape = shapeOf(request, revision, terms);
      const choiceSet = choiceSetOf(revision.key, request.choices, terms);
      const known = engines.some(({ choiceSets }) => choiceSets.has(choiceSet));
      const cost = estimates.cost(shape, known);
      const job = createJob({ shape, choiceSet, cost, sequence: nextJob(), revision, request, terms, arrived, answer });
      admission.admit(job, engines, arrived);
      return job;
    } catch (error) {
      answer.released();
      throw error;
    }
  }
}

// Remembers what was just refused. In a flood nearly every request is refused, and most of the cost of a refusal is
// reading the request. The costs of the jobs that were just refused show, before the next request is read, that there
// is no room for it either.

/** The refusals of the last moments. */
export interface RecentRefusals {
  /** A job of this cost, milliseconds, was refused. */
  note(cost: number, now: number): void;
  /** The least cost among them, milliseconds; undefined unless there was a flood in the current second. */
  cheapest(now: number): number | undefined;
}

/**
 * This many refusals make a flood. In each second the first requests are still read and judged by their size, so the
 * end of the flood is noticed within a second.
 */
const FLOOD = 8;
const SECOND = 1000;

/** No refusals at first. Times are on the clock of `performance.now()`. */
export function createRecentRefusals(): RecentRefusals {
  let since = Number.NEGATIVE_INFINITY;
  let count = 0;
  let least = 0;
  return {
    note(cost, now) {
      if (now - since >= SECOND) {
        since = now;
        count = 0;
        least = cost;
      }
      count += 1;
      least = Math.min(least, cost);
    },
    cheapest: (now) => (now - since < SECOND && count >= FLOOD ? least : undefined),
  };
}
