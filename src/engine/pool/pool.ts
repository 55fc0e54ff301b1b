/**
 * The pool: takes decisions in, queues them fairly, gives each to the engine that will be done with it first, and
 * follows every job to its end. A caller is answered at once when it leaves or its time is up; the engine is free again
 * when the run ends.
 *
 * One file: where a job goes and what becomes of it is decided by the same counts of what the engines are doing.
 */
import type { CallerTerms, JobTerms, PrepareOutcome, ScoreJob, ScoreOutcome } from '../engine.ts';
import {
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../errors.ts';
import type { EngineLogger, EngineSettings } from '../options.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import { blamesJob, type Death } from '../processes/recycling.ts';
import { type JobResult, PASSING_LENGTH } from '../worker/messages.ts';
import { type Admission, createAdmission, Intake } from './admission.ts';
import { createEstimates, type Estimates, shapeOf } from './estimates.ts';
import { type Backlog, createFairQueue, type FairQueue } from './fair-queue.ts';
import { createDeadlines, type Deadlines, type Job, outcomeOf, type Settled } from './job.ts';
import { Preparations, type PrepareRequest } from './preparations.ts';

/** What a pool is made of. */
export interface PoolOptions {
  readonly settings: EngineSettings;
  readonly revisions: Revisions;
  /** Where its engines run; more may be added later. */
  readonly slots: readonly EngineSlot[];
  /** Is told of jobs that are given up because their engine ended while working on them. */
  abandoned(death: Death): void;
}

/** A job that this many engines have failed at has failed. */
const MAX_FAILURES = 2;

/** Decisions in, outcomes out, until it is closed and the last one is over. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #logger: EngineLogger;
  readonly #queue: FairQueue<Job> = createFairQueue<Job>();
  readonly #running = new Map<number, Job>();
  readonly #estimates: Estimates = createEstimates();
  readonly #deadlines: Deadlines<Job> = createDeadlines((job) => this.#giveUp(job, new JobDeadlinePassed()));
  readonly #admission: Admission;
  readonly #intake: Intake;
  readonly #preparations: Preparations;
  #sequence = 0;
  #lastFinish = performance.now();
  #waitingSince = this.#lastFinish;
  readonly #emptied = Promise.withResolvers<void>();

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#logger = options.settings.logger;
    const nextJob = (): number => ++this.#sequence;
    this.#admission = createAdmission(options.settings, this.#queue, options.slots);
    this.#intake = new Intake({
      revisions: options.revisions,
      estimates: this.#estimates,
      admission: this.#admission,
      serving: (revision) => this.#serving(revision),
      nextJob,
    });
    this.#preparations = new Preparations({
      nextJob,
      abandoned: options.abandoned,
      choiceCost: (revision, choices, caller) =>
        this.#estimates.cost(shapeOf({ input: '', instruction: '', choices }, revision, caller), false) /
        choices.length,
    });
  }

  /** Makes a decision. Throws the errors of errors.ts. */
  async score(request: ScoreJob, terms: JobTerms): Promise<ScoreOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<ScoreOutcome>();
    const job = this.#intake.takeIn(request, terms, { resolve, reject, released: () => terms.released?.() });
    this.#options.revisions.count(job.revision, 1);
    this.#deadlines.add(job);
    this.#enqueue(job);
    this.dispatch();
    const leave = (): void => this.#giveUp(job, new JobCanceled());
    terms.signal.addEventListener('abort', leave, { once: true });
    return await promise.finally(() => terms.signal.removeEventListener('abort', leave));
  }

  /** Encodes choices in every engine. Throws the errors of errors.ts. */
  async prepare(request: PrepareRequest, terms: JobTerms): Promise<PrepareOutcome> {
    const { revisions } = this.#options;
    const revision = this.#intake.accept(request, terms, performance.now());
    const engines = this.#serving(revision);
    if (engines.length === 0) throw new ModelUnavailable(`${revision.name} has no engine now`, 1);
    const outcome = this.#preparations.prepare(revision, request, terms, engines);
    revisions.count(revision, 1);
    this.dispatch();
    return await outcome.finally(() => {
      revisions.count(revision, -1);
      this.#checkEmpty();
    });
  }

  /** Whether choices wait to be prepared in a process. */
  preparing(process: EngineProcess): boolean {
    return this.#preparations.waitFor(process);
  }

  /** See `Engine.crowded`. */
  crowded(terms: CallerTerms): number | undefined {
    return this.#admission.crowded(terms);
  }

  /** What waits in the queue, summed up. */
  backlog(): Backlog {
    return this.#queue.backlog('all');
  }

  /** Milliseconds for which decisions have waited without any job being finished; 0 if none waits. */
  standstill(): number {
    if (this.backlog().jobs === 0) return 0;
    return performance.now() - Math.max(this.#lastFinish, this.#waitingSince);
  }

  /** Gives waiting jobs to engines that are free; called when an engine can do more than before. */
  dispatch(): void {
    for (;;) {
      const waiting = this.backlog().jobs;
      const engines = freeEngines(this.#processes(), waiting);
      if (engines.length === 0) return;
      if (engines.some((process) => this.#preparations.sendNext(process, waiting > 0))) continue;
      const job = this.#queue.take((each) => engines.some((process) => takes(process, each)));
      if (job === undefined) return;
      const taking = engines.filter((process) => takes(process, job));
      const process = soonestDone(taking, (each) => this.#costOn(job, each));
      if (process !== undefined) this.#start(job, process);
    }
  }

  /** A job has a result. `occupied`: milliseconds for which the job kept the engine from the next one. */
  finished(process: EngineProcess, id: number, result: JobResult, occupied: number): void {
    this.#lastFinish = performance.now();
    const job = this.#running.get(id);
    if (job === undefined) {
      if (this.#preparations.finished(process, id, result)) this.dispatch();
      return;
    }
    if (result.kind === 'failed') {
      this.#logger.error({ model: job.revision.name, problem: result.message }, 'an engine failed at a decision');
      this.#retry(job, result.message);
    } else {
      this.#settle(job, process, result, occupied);
      this.#conclude(job);
    }
    this.dispatch();
  }

  /** An engine has ended with these jobs in flight, in the order in which it got them. */
  lost(process: EngineProcess, jobs: readonly number[], death: Death): void {
    for (const [place, id] of jobs.entries()) {
      const job = this.#running.get(id);
      // An engine works on the first of its jobs or on one that passes it; with a concurrency above 1, on all of them.
      const blamed = blamesJob(death) && (place === 0 || process.passable || process.concurrency > 1);
      if (job === undefined) this.#preparations.ended(id, blamed ? death : undefined);
      else if (blamed) this.#abandon(job, death);
      else this.#retry(job, `an engine ${death.reason}`);
    }
    this.#preparations.lost(process);
    this.dispatch();
  }

  /** Fails the waiting jobs of a model that cannot be served any more. */
  unavailable(revision: Revision): void {
    this.#preparations.unavailable(revision);
    const error = new ModelUnavailable(`${revision.name} cannot be served now`, 1);
    for (const job of this.#queue.all()) if (job.revision === revision) this.#giveUp(job, error);
  }

  /** Refuses new jobs; resolves when there are none left. */
  close(): Promise<void> {
    this.#intake.close();
    this.#checkEmpty();
    return this.#emptied.promise;
  }

  #processes(): readonly EngineProcess[] {
    return this.#options.slots.flatMap((slot) => slot.processes);
  }

  #serving({ key }: Revision): readonly EngineProcess[] {
    return this.#processes().filter(({ models }) => models.has(key));
  }

  #costOn({ shape, choiceSet }: Job, { choiceSets }: EngineProcess): number {
    return this.#estimates.cost(shape, choiceSets.has(choiceSet));
  }

  #enqueue(job: Job): void {
    if (this.backlog().jobs === 0) this.#waitingSince = performance.now();
    this.#queue.add(job);
  }

  /** Sends a job to an engine, unless less than half of the time that it takes is left. */
  #start(job: Job, process: EngineProcess): void {
    const cost = this.#costOn(job, process);
    const now = performance.now();
    const timeLeft = job.deadline - now;
    if (timeLeft < cost / 2) {
      this.#reject(job, new EngineOverloaded(1));
      this.#conclude(job);
      return;
    }
    const { input, instruction, choices, vector = false } = job.request;
    job.state = 'running';
    job.process = process;
    job.sentAt = now;
    this.#running.set(job.id, job);
    process.choiceSets.add(job.choiceSet);
    this.#preparations.yielded(process, cost);
    const { key, part } = job.choiceSet;
    process.send({ kind: 'score', job: job.id, key, part, input, instruction, choices, vector, timeLeft }, cost);
  }

  /** Answers the caller of a job that its engine is done with. */
  #settle(job: Job, process: EngineProcess, result: Settled, occupied: number): void {
    if (result.kind === 'unavailable') {
      const { name } = job.revision;
      this.#logger.error({ model: name, problem: result.message }, 'an inference server failed at a decision');
      this.#reject(job, new ModelUnavailable(`${name}: ${result.message}`, 1));
      return;
    }
    if (result.kind === 'scored') this.#estimates.observe(job.shape, result, occupied);
    else process.choiceSets.remove(job.choiceSet);
    // The caller of a canceled job has been answered, unless its deadline passed by the engine's clock a moment early.
    if (result.kind === 'canceled') this.#reject(job, new JobDeadlinePassed());
    else this.#answer(job, () => job.answer.resolve(outcomeOf(result, job)));
  }

  /** Queues a job once more that an engine failed at, if it is still wanted and its model served. */
  #retry(job: Job, reason: string): void {
    this.#running.delete(job.id);
    const { state, retired } = job.revision;
    if (!job.answered && ++job.failures < MAX_FAILURES && state === 'ready' && !retired) {
      job.state = 'queued';
      this.#enqueue(job);
    } else {
      this.#reject(job, new EngineFailed(reason));
      this.#conclude(job);
    }
  }

  /** Ends a job that may have ended its engine, since it might end the next one, too. */
  #abandon(job: Job, death: Death): void {
    this.#options.abandoned(death);
    const { premiseLength, choices, choicesLength } = job.shape;
    const fields = { model: job.revision.name, reason: death.reason, premiseLength, choices, choicesLength };
    this.#logger.error(fields, 'a decision is given up: its engine ended with it');
    this.#reject(job, new JobAbandoned(death.reason));
    this.#conclude(job);
  }

  /** Answers a caller whose decision is no longer wanted, or can no longer be made. */
  #giveUp(job: Job, error: Error): void {
    this.#reject(job, error);
    if (this.#queue.remove(job)) this.#conclude(job);
    else if (job.state === 'running') job.process?.cancel(job.id);
  }

  #reject(job: Job, error: Error): void {
    this.#answer(job, () => job.answer.reject(error));
  }

  #answer(job: Job, give: () => void): void {
    if (job.answered) return;
    job.answered = true;
    this.#deadlines.remove(job);
    give();
  }

  /** Ends a job: it no longer takes up anything. */
  #conclude(job: Job): void {
    if (job.state === 'over') return;
    job.state = 'over';
    this.#running.delete(job.id);
    this.#options.revisions.count(job.revision, -1);
    job.answer.released();
    this.#checkEmpty();
  }

  #checkEmpty(): void {
    const left = this.#running.size + this.#preparations.size + this.backlog().jobs;
    if (this.#intake.isClosed && left === 0) this.#emptied.resolve();
  }
}

/** An engine may be given a second job if its only one ends within this many milliseconds. */
const PREFETCH_HORIZON = 20;

/**
 * The engines that could take one of `waiting` decisions now: those that work on fewer jobs than they may. If there are
 * none, those whose only job a short decision may pass and, if many decisions wait, those that are nearly done with
 * their only job, so that they need not wait for the next. With few waiting, another engine could become free before
 * the one to which the job had been bound early.
 */
function freeEngines(all: readonly EngineProcess[], waiting: number): readonly EngineProcess[] {
  // One that still loads models decides if no other can.
  const settled = all.filter(({ loading, concurrency }) => !loading || concurrency > 1);
  const engines = settled.length > 0 ? settled : all;
  const idle = engines.filter(({ inFlight, concurrency }) => inFlight < concurrency);
  if (idle.length > 0) return idle;
  const many = waiting > engines.length;
  return engines.filter(
    (process) =>
      process.concurrency === 1 &&
      process.inFlight === 1 &&
      (process.passable || (many && process.remaining() <= PREFETCH_HORIZON)),
  );
}

/**
 * Whether a free engine has loaded the model of a decision and takes it now. One that reads a long text takes only
 * short decisions.
 */
function takes({ models, passable }: EngineProcess, { revision, shape }: Pick<Job, 'revision' | 'shape'>): boolean {
  const isShort = shape.premiseLength + shape.choicesLength <= PASSING_LENGTH;
  return models.has(revision.key) && (isShort || !passable);
}

/**
 * Of the engines that take a job, the one that will be done with it first; `costOn` estimates the job alone, in
 * milliseconds.
 */
function soonestDone(
  engines: readonly EngineProcess[],
  costOn: (process: EngineProcess) => number,
): EngineProcess | undefined {
  let soonest: EngineProcess | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const process of engines) {
    const expected = process.remaining() + costOn(process);
    if (expected < least) [soonest, least] = [process, expected];
  }
  return soonest;
}
