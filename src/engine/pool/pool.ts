/**
 * The pool: takes jobs in, queues them fairly, gives each to the engine that will be done with it first, and
 * follows every job to its end. A caller is answered at once when it leaves or its time is up; the engine is free again
 * when the run ends.
 *
 * One file: where a job goes and what becomes of it is decided by the same counts of what the engines are doing.
 */
import type { JobTerms, PrepareOutcome, ScoreJob, ScoreOutcome } from '../engine.ts';
import {
  EngineClosing,
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../errors.ts';
import type { EngineLogger, EngineSettings } from '../options.ts';
import { isRemote } from '../packages/manifest.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import { blamesJob, type Death } from '../processes/recycling.ts';
import { choiceListOf } from '../processes/work-in-flight.ts';
import { type JobResult, PASSING_LENGTH, type ScoredResult } from '../worker/messages.ts';
import { Admission } from './admission.ts';
import { Estimates, shapeOf } from './estimates.ts';
import { type Backlog, FairQueue } from './fair-queue.ts';
import { type Answered, createJob, type Job, outcomeOf, type Part, type Settled, taskOf } from './job.ts';
import { type Preparation, pieceOf, prepareIn } from './preparation.ts';

/** A job that this many engines have failed at has failed. */
const MAX_FAILURES = 2;
/** The longest delay that a timer takes, milliseconds. */
const MAX_TIMER = 2 ** 31 - 1;

/** What the processes of all groups have done since the start, as `EngineStats` says. */
export class Tally {
  busy = 0;
  replacements = 0;
  restarts = 0;
  readonly abandoned = { stuck: 0, crashed: 0 };
  readonly choices = { encoded: 0, cached: 0 };

  /** A decision was made here. */
  scored({ tokenize, infer, encoded, probabilities }: ScoredResult): void {
    this.busy += tokenize + infer;
    this.choices.encoded += encoded;
    this.choices.cached += probabilities.length - encoded;
  }
}

/** Jobs in, outcomes out, until it is closed and the last one is over. */
export class Pool {
  readonly #logger: EngineLogger;
  readonly #revisions: Revisions;
  readonly #slots: readonly EngineSlot[];
  readonly #tally: Tally;
  readonly #queue = new FairQueue<Job>();
  readonly #running = new Map<number, Job>();
  readonly #estimates = new Estimates();
  /** Whether it takes decisions in: see `Engine.crowded`. */
  readonly admission: Admission;
  #state: 'open' | 'closing' = 'open';
  /** Preparations under way. */
  #preparing = 0;
  #sequence = 0;
  #lastFinish = performance.now();
  #waitingSince = this.#lastFinish;
  readonly #emptied = Promise.withResolvers<void>();

  /** `slots`: where its engines run; more may be added later. */
  constructor(settings: EngineSettings, revisions: Revisions, slots: readonly EngineSlot[], tally: Tally) {
    this.#logger = settings.logger;
    this.#revisions = revisions;
    this.#slots = slots;
    this.#tally = tally;
    this.admission = new Admission(settings, this.#queue, slots);
  }

  /** Makes a decision, or a part of one. Throws the errors of errors.ts. */
  async score(request: ScoreJob, terms: JobTerms, part: Part = {}): Promise<ScoreOutcome> {
    let job: Job;
    try {
      job = this.#takeIn(request, terms, part);
    } catch (error) {
      terms.released?.();
      throw error;
    }
    return outcomeOf(await this.#perform(job, terms.signal), job);
  }

  /** Encodes choices in every engine. Throws the errors of errors.ts. */
  async prepare(
    { choices, ...request }: Pick<ScoreJob, 'model' | 'revision' | 'choices'>,
    terms: JobTerms,
  ): Promise<PrepareOutcome> {
    const arrived = performance.now();
    const revision = this.#accept(request, terms, arrived);
    const slots = this.#slots.filter(({ process }) => process?.models.has(revision.key));
    const [first] = slots;
    if (first === undefined) throw new ModelUnavailable(`${revision.name} has no engine now`, 1);
    const shape = shapeOf({ input: '', instruction: '', choices }, revision, terms);
    const choiceList = choiceListOf(revision.key, choices, terms);
    const cost = this.#estimates.cost(shape, false);
    const preparation: Preparation = { revision, shape, choiceList, choices, cost, arrived, terms };
    const nextId = (): number => ++this.#sequence;
    this.admission.admit(pieceOf(preparation, first, 0, nextId()), this.#serving(revision));
    this.#preparing++;
    this.#revisions.count(revision, 1);
    try {
      return await prepareIn(slots, preparation, nextId, (job, signal) => this.#perform(job, signal));
    } finally {
      this.#preparing--;
      this.#revisions.count(revision, -1);
      this.#checkEmpty();
    }
  }

  /** Milliseconds that a decision is estimated to take here; 0 for a model that is not served. */
  cost(request: ScoreJob, terms: JobTerms): number {
    const revision = this.#revisions.find(request.model, request.revision);
    return revision === undefined ? 0 : this.#sizedUp(request, revision, terms).cost;
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
      // Decisions alone, at least: a preparation has one piece for each slot at most.
      const waiting = this.backlog().jobs - this.#preparing * this.#slots.length;
      const engines = freeEngines(this.#processes(), waiting);
      if (engines.length === 0) return;
      const job = this.#queue.take((each) => engines.some((process) => takes(process, each)));
      if (job === undefined) return;
      const untilDone = (process: EngineProcess): number => process.remaining() + this.#costOn(job, process);
      const taking = engines.filter((process) => takes(process, job));
      const [soonest] = taking.sort((a, b) => untilDone(a) - untilDone(b));
      if (soonest !== undefined) this.#start(job, soonest);
    }
  }

  /** A job has a result. `occupied`: milliseconds for which the job kept the engine from the next one. */
  finished(process: EngineProcess, id: number, result: JobResult, occupied: number): void {
    this.#lastFinish = performance.now();
    const job = this.#running.get(id);
    if (job === undefined) return;
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
      if (job === undefined) continue;
      if (blamed) this.#abandon(job, death);
      else this.#retry(job, `an engine ${death.reason}`);
    }
    for (const job of this.#queue.all()) {
      if (job.slot !== undefined && job.slot.process === undefined)
        this.#giveUp(job, new EngineFailed('the engine that it waits for has ended'));
    }
    this.dispatch();
  }

  /** Fails the waiting jobs of a model that cannot be served any more. */
  unavailable(revision: Revision): void {
    const error = new ModelUnavailable(`${revision.name} cannot be served now`, 1);
    for (const job of this.#queue.all()) if (job.revision === revision) this.#giveUp(job, error);
  }

  /** Refuses new jobs; resolves when there are none left. */
  close(): Promise<void> {
    this.#state = 'closing';
    this.#checkEmpty();
    return this.#emptied.promise;
  }

  #processes(): readonly EngineProcess[] {
    return this.#slots.flatMap((slot) => slot.processes);
  }

  #serving({ key }: Revision): readonly EngineProcess[] {
    return this.#processes().filter(({ models }) => models.has(key));
  }

  /**
   * The revision that a request is for.
   * @throws EngineClosing, JobCanceled, JobDeadlinePassed or ModelUnavailable if it cannot be taken in.
   */
  #accept({ model, revision: name }: Pick<ScoreJob, 'model' | 'revision'>, terms: JobTerms, arrived: number): Revision {
    if (this.#state === 'closing') throw new EngineClosing();
    if (terms.signal.aborted) throw new JobCanceled();
    if (terms.deadline <= arrived) throw new JobDeadlinePassed();
    const revision = this.#revisions.find(model, name);
    if (revision?.state === 'ready') return revision;
    throw new ModelUnavailable(`${model}@${name} is not served now`, 1);
  }

  /** A new job for a decision, admitted. */
  #takeIn(request: ScoreJob, terms: JobTerms, { after = 0, since, admitted = false }: Part): Job {
    const arrived = performance.now();
    const revision = this.#accept(request, terms, arrived);
    const { engines, ...size } = this.#sizedUp(request, revision, terms);
    const facts = { id: ++this.#sequence, revision, task: taskOf(request), ...size, after, since, arrived, terms };
    const job = createJob({ ...facts, slot: undefined });
    if (!admitted) this.admission.admit(job, engines);
    return job;
  }

  /** What is known of a decision before it runs, and the engines that could make it. */
  #sizedUp(request: ScoreJob, revision: Revision, terms: JobTerms) {
    const engines = this.#serving(revision);
    const shape = shapeOf(request, revision, terms);
    const choiceList = choiceListOf(revision.key, request.choices, terms);
    const known = engines.some(({ knownChoices }) => knownChoices.has(choiceList.name));
    return { engines, shape, choiceList, cost: this.#estimates.cost(shape, known) };
  }

  /** Queues a job and follows it to its end, or until nobody waits for it any more. */
  async #perform(job: Job, signal: AbortSignal): Promise<Answered> {
    const leave = (): void => this.#giveUp(job, new JobCanceled());
    signal.addEventListener('abort', leave, { once: true });
    const timeLeft = Math.max(0, Math.ceil(job.terms.deadline - performance.now()));
    const timer = setTimeout(() => this.#giveUp(job, new JobDeadlinePassed()), Math.min(MAX_TIMER, timeLeft));
    this.#revisions.count(job.revision, 1);
    this.#enqueue(job);
    this.dispatch();
    try {
      return await job.answer.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', leave);
    }
  }

  #costOn({ shape, choiceList, slot, cost }: Job, { knownChoices }: EngineProcess): number {
    return slot === undefined ? this.#estimates.cost(shape, knownChoices.has(choiceList.name)) : cost;
  }

  #enqueue(job: Job): void {
    if (this.backlog().jobs === 0) this.#waitingSince = performance.now();
    this.#queue.add(job);
  }

  /** Sends a job to an engine, unless less than half of the time that it takes is left. */
  #start(job: Job, process: EngineProcess): void {
    const cost = this.#costOn(job, process);
    const now = performance.now();
    const timeLeft = job.terms.deadline - now;
    if (timeLeft < cost / 2) {
      this.#reject(job, new EngineOverloaded(1));
      this.#conclude(job);
      return;
    }
    job.state = 'running';
    job.process = process;
    job.sentAt = now;
    this.#running.set(job.id, job);
    process.knownChoices.set(job.choiceList.name, true);
    const { key, part } = job.choiceList;
    process.send({ ...job.task, job: job.id, key, part, timeLeft }, cost);
  }

  /** Answers the caller of a job that its engine is done with. */
  #settle(job: Job, process: EngineProcess, result: Settled, occupied: number): void {
    if (result.kind === 'unavailable') {
      const { name } = job.revision;
      this.#logger.error({ model: name, problem: result.message }, 'an inference server failed at a decision');
      this.#reject(job, new ModelUnavailable(`${name}: ${result.message}`, 1));
      return;
    }
    this.#estimates.occupied(job.shape, occupied);
    if (result.kind === 'scored') {
      this.#estimates.observe(job.shape, result, occupied);
      // What a server does takes no time here.
      if (!isRemote(job.revision.manifest.family)) this.#tally.scored(result);
    } else if (result.kind !== 'prepared') process.knownChoices.delete(job.choiceList.name);
    // The caller of a canceled job has been answered, unless its deadline passed by the engine's clock a moment early.
    if (result.kind === 'canceled') this.#reject(job, new JobDeadlinePassed());
    else this.#answer(job, () => job.answer.resolve(result));
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
    if (death.cause === 'stuck' || death.cause === 'crashed') this.#tally.abandoned[death.cause] += 1;
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
    give();
  }

  /** Ends a job: it no longer takes up anything. */
  #conclude(job: Job): void {
    if (job.state === 'over') return;
    job.state = 'over';
    this.#running.delete(job.id);
    this.#revisions.count(job.revision, -1);
    if (job.task.kind === 'score') job.terms.released?.();
    this.#checkEmpty();
  }

  #checkEmpty(): void {
    const left = this.#running.size + this.#preparing + this.backlog().jobs;
    if (this.#state === 'closing' && left === 0) this.#emptied.resolve();
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
 * Whether a free engine has loaded the model of a job and takes it now. One that reads a long text takes only short
 * decisions, and one that is nearly done with its job no piece of a preparation, behind which decisions would wait.
 */
function takes(process: EngineProcess, { revision, shape, slot }: Job): boolean {
  if (!process.models.has(revision.key)) return false;
  if (slot !== undefined) return slot.process === process && process.inFlight < process.concurrency;
  return !process.passable || shape.premiseLength + shape.choicesLength <= PASSING_LENGTH;
}
