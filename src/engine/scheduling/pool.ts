/**
 * The pool: takes decisions in, queues them fairly, gives each to the engine that will have done it first, and sees every job to its end. A caller
 * is answered at once when it leaves or its time is up; the engine's slot is free again when the run ends.
 */
import type { CallerTerms, JobTerms, PrepareOutcome, ScoreJob, ScoreOutcome } from '../engine.ts';
import {
  EngineClosing,
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../errors.ts';
import type { EngineSettings } from '../options.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import { blamesJob, type Death } from '../processes/deaths.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import { choiceSetOf } from '../processes/known-choice-sets.ts';
import type { JobResult } from '../worker/messages.ts';
import { createDeadlines } from './deadlines.ts';
import { createDoor } from './door.ts';
import { createEstimates, shapeOf } from './estimates.ts';
import { type Backlog, createFairQueue } from './fair-queue.ts';
import { type Answer, createJob, type Job } from './job.ts';
import { outcomeOf } from './outcome.ts';
import { freeEngines, soonestDone } from './placement.ts';
import { createPreparations, type PrepareRequest } from './preparations.ts';

/** Decisions in, outcomes out. */
export interface Pool {
  score(request: ScoreJob, terms: JobTerms): Promise<ScoreOutcome>;
  prepare(request: PrepareRequest, terms: JobTerms): Promise<PrepareOutcome>;
  /** Whether choices wait to be prepared in a process. */
  preparing(process: EngineProcess): boolean;
  /** See `Engine.crowded`. */
  crowded(terms: CallerTerms): number | undefined;
  /** Gives waiting jobs to engines that are free; called when an engine can do more than before. */
  dispatch(): void;
  /** `occupied`: milliseconds for which the job kept the engine from the next one. */
  finished(process: EngineProcess, job: number, result: JobResult, occupied: number): void;
  /** Jobs that an engine took with it, in the order in which it got them. */
  lost(process: EngineProcess, jobs: readonly number[], death: Death): void;
  /** Milliseconds for which decisions have waited without any job being finished; 0 if none waits. */
  standstill(): number;
  /** Fails the waiting jobs of a model that cannot be served any more. */
  unavailable(revision: Revision): void;
  /** What waits. */
  backlog(): Backlog;
  /** Refuses new jobs; resolves when there are none left. */
  close(): Promise<void>;
}

/** Catalogs that may be prepared at a time, and those of one owner. */
const maxPreparations = 256;
const maxOwnersPreparations = 64;

/** `slots` may still be empty when the pool is made. `abandoned` hears of jobs that are given up because their engine ended with them. */
export function createPool(
  settings: EngineSettings,
  revisions: Revisions,
  slots: readonly EngineSlot[],
  abandoned: (death: Death) => void,
): Pool {
  const queue = createFairQueue<Job>();
  const running = new Map<number, Job>();
  const estimates = createEstimates();
  const deadlines = createDeadlines<Job>((job) => abandon(job, new JobDeadlinePassed()));
  const door = createDoor(settings, queue, slots);
  let sequence = 0;
  const preparations = createPreparations({
    nextJob: () => ++sequence,
    abandoned,
    choiceCost: (revision, choices) =>
      estimates.cost(shapeOf({ input: '', instruction: '', choices }, revision), false) / choices.length,
    most: maxPreparations,
    mostOfOwner: maxOwnersPreparations,
  });
  let lastFinish = performance.now();
  let waitingSince = lastFinish;
  let closing = false;
  let emptied: (() => void) | undefined;

  const processes = (): readonly EngineProcess[] => slots.flatMap((slot) => slot.processes);
  const serving = ({ key }: Revision): readonly EngineProcess[] => processes().filter(({ models }) => models.has(key));

  const conclude = (job: Job): void => {
    if (job.state === 'over') return;
    job.state = 'over';
    running.delete(job.id);
    revisions.count(job.revision, -1);
    job.answer.released();
    checkEmpty();
  };

  const answer = (job: Job, give: () => void): void => {
    if (job.answered) return;
    job.answered = true;
    deadlines.remove(job);
    give();
  };

  /** Answers a caller whose decision is not wanted any more, or cannot be had. */
  const abandon = (job: Job, error: Error): void => {
    answer(job, () => job.answer.reject(error));
    if (queue.remove(job)) conclude(job);
    else if (job.state === 'running') job.process?.cancel(job.id);
  };

  const costOn = (job: Job, process: EngineProcess): number =>
    estimates.cost(job.shape, process.choiceSets.has(job.choiceSet));

  const dispatch = (): void => {
    for (;;) {
      const waiting = queue.backlog('all').jobs;
      const engines = freeEngines(processes(), waiting);
      if (engines.length === 0) return;
      if (
        engines.some((process) => process.inFlight < process.concurrency && preparations.sendNext(process, waiting > 0))
      )
        continue;
      const job = queue.take(({ revision: { key } }) => engines.some(({ models }) => models.has(key)));
      if (job === undefined) return;
      const process = soonestDone(engines, job.revision.key, (each) => costOn(job, each));
      if (process !== undefined) start(job, process);
    }
  };

  /** Sends a job that was taken from the queue to an engine, unless it cannot be done in time by far. */
  const start = (job: Job, process: EngineProcess): void => {
    const cost = costOn(job, process);
    const now = performance.now();
    if (job.deadline - now < cost / 2) {
      answer(job, () => job.answer.reject(new EngineOverloaded(1)));
      conclude(job);
      return;
    }
    const { input, instruction, choices, vector = false } = job.request;
    job.state = 'running';
    job.process = process;
    job.sentAt = now;
    running.set(job.id, job);
    process.choiceSets.add(job.choiceSet);
    preparations.yielded(process, cost);
    const timeLeft = job.deadline - now;
    const { key, part } = job.choiceSet;
    process.send({ kind: 'score', job: job.id, key, part, input, instruction, choices, vector, timeLeft }, cost);
  };

  /** Gives a job up that may have ended its engine: another engine would be the next to end. */
  const giveUp = (job: Job, death: Death): void => {
    abandoned(death);
    const { premiseLength, choices, choicesLength } = job.shape;
    const fields = { model: job.revision.name, reason: death.reason, premiseLength, choices, choicesLength };
    settings.logger.error(fields, 'a decision is given up: its engine ended with it');
    answer(job, () => job.answer.reject(new JobAbandoned(death.reason)));
    conclude(job);
  };

  /** Puts a job back that an engine failed at, once. */
  const again = (job: Job, reason: string): void => {
    running.delete(job.id);
    const { state, retired } = job.revision;
    if (!job.answered && ++job.failures < 2 && state === 'ready' && !retired) {
      job.state = 'queued';
      if (queue.backlog('all').jobs === 0) waitingSince = performance.now();
      queue.add(job);
    } else {
      answer(job, () => job.answer.reject(new EngineFailed(reason)));
      conclude(job);
    }
  };

  const estimated = (request: ScoreJob, terms: JobTerms, revision: Revision) => {
    const shape = shapeOf(request, revision);
    const choiceSet = choiceSetOf(revision.key, request.choices, terms);
    const known = serving(revision).some(({ choiceSets }) => choiceSets.has(choiceSet));
    return { shape, choiceSet, cost: estimates.cost(shape, known) };
  };

  /** The revision that a call is for. Throws what keeps it from being taken in. */
  const accept = (request: PrepareRequest, terms: JobTerms, arrived: number): Revision => {
    if (closing) throw new EngineClosing();
    if (terms.signal.aborted) throw new JobCanceled();
    if (terms.deadline <= arrived) throw new JobDeadlinePassed();
    const revision = revisions.find(request.model, request.revision);
    if (revision?.state === 'ready') return revision;
    throw new ModelUnavailable(`${request.model}@${request.revision} is not served now`, 1);
  };

  /** A new job that may wait. One that is refused takes up nothing. */
  const takeIn = (request: ScoreJob, terms: JobTerms, answer: Answer): Job => {
    try {
      const arrived = performance.now();
      const revision = accept(request, terms, arrived);
      const job = createJob({
        ...estimated(request, terms, revision),
        sequence: ++sequence,
        revision,
        request,
        terms,
        arrived,
        answer,
      });
      door.admit(job, serving(job.revision), arrived);
      return job;
    } catch (error) {
      answer.released();
      throw error;
    }
  };

  const checkEmpty = (): void => {
    if (closing && running.size + preparations.size + queue.backlog('all').jobs === 0) emptied?.();
  };

  return {
    dispatch,
    async prepare(request, terms) {
      const revision = accept(request, terms, performance.now());
      const engines = serving(revision);
      if (engines.length === 0) throw new ModelUnavailable(`${revision.name} has no engine now`, 1);
      const outcome = preparations.prepare(revision, request, terms, engines);
      revisions.count(revision, 1);
      dispatch();
      return await outcome.finally(() => {
        revisions.count(revision, -1);
        checkEmpty();
      });
    },
    preparing: (process) => preparations.waitFor(process),
    crowded: (terms) => door.crowded(terms),
    async score(request, terms) {
      const { promise, resolve, reject } = Promise.withResolvers<ScoreOutcome>();
      const job = takeIn(request, terms, { resolve, reject, released: () => terms.released?.() });
      revisions.count(job.revision, 1);
      deadlines.add(job);
      if (queue.backlog('all').jobs === 0) waitingSince = performance.now();
      queue.add(job);
      dispatch();
      const leave = (): void => abandon(job, new JobCanceled());
      terms.signal.addEventListener('abort', leave, { once: true });
      return await promise.finally(() => terms.signal.removeEventListener('abort', leave));
    },
    standstill: () => (queue.backlog('all').jobs === 0 ? 0 : performance.now() - Math.max(lastFinish, waitingSince)),
    finished(process, id, result, occupied) {
      lastFinish = performance.now();
      const job = running.get(id);
      if (job === undefined) {
        if (preparations.finished(process, id, result)) dispatch();
        return;
      }
      if (result.kind === 'failed') {
        settings.logger.error({ model: job.revision.name, problem: result.message }, 'an engine failed at a decision');
        again(job, result.message);
      } else if (result.kind === 'unavailable') {
        const { name } = job.revision;
        settings.logger.error({ model: name, problem: result.message }, 'an inference server failed at a decision');
        answer(job, () => job.answer.reject(new ModelUnavailable(`${name}: ${result.message}`, 1)));
        conclude(job);
      } else {
        if (result.kind === 'scored') estimates.observe(job.shape, result, occupied);
        else process.choiceSets.remove(job.choiceSet);
        // One that was canceled has been answered, or else its time was up by the engine's clock a moment before it is by this one.
        if (result.kind === 'canceled') answer(job, () => job.answer.reject(new JobDeadlinePassed()));
        else answer(job, () => job.answer.resolve(outcomeOf(result, job)));
        conclude(job);
      }
      dispatch();
    },
    lost(process, jobs, death) {
      for (const [place, id] of jobs.entries()) {
        const job = running.get(id);
        // An engine that does one thing at a time works on the first of its jobs; the others it has not begun.
        const blamed = blamesJob(death) && (place === 0 || process.concurrency > 1);
        if (job === undefined) preparations.ended(id, blamed ? death : undefined);
        else if (blamed) giveUp(job, death);
        else again(job, `an engine ${death.reason}`);
      }
      preparations.lost(process);
      dispatch();
    },
    unavailable(revision) {
      preparations.unavailable(revision);
      const waiting = queue.all().filter((job) => job.revision === revision);
      for (const job of waiting) abandon(job, new ModelUnavailable(`${revision.name} cannot be served now`, 1));
    },
    backlog: () => queue.backlog('all'),
    close() {
      closing = true;
      return new Promise((resolve) => {
        emptied = resolve;
        checkEmpty();
      });
    },
  };
}
