/** How a decision becomes a job: its model must be served, its cost is estimated, and it is admitted or refused. */
import type { JobTerms, ScoreJob } from '../engine.ts';
import { EngineClosing, JobCanceled, JobDeadlinePassed, ModelUnavailable } from '../errors.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import { choiceSetOf } from '../processes/known-choice-sets.ts';
import type { Admission } from './admission.ts';
import { type Estimates, shapeOf } from './estimates.ts';
import { type Answer, createJob, type Job } from './job.ts';

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
      const shape = shapeOf(request, revision);
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
