/**
 * Decisions of cascades. Each step is asked as an ordinary job of its own model's queue, so that limits, fairness and
 * admission are those of every job; the next one only if the answer so far is less sure than the step's `sure`. All
 * other jobs are passed on. Unless steps may be left out, a decision is admitted as a whole, and its later jobs wait
 * behind nothing that came after it: behind a full queue they would never be done in time.
 *
 * A step is away if its model cannot be served, or if it fails or has no room in time when there is an answer already.
 * With `if_away: answer` the others decide; an overloaded first step is no reason to send all decisions to the next.
 */
import type { AnsweringStep, JobTerms, PrepareOutcome, ScoreJob, ScoreOutcome } from '../engine.ts';
import {
  DeadlineTooShort,
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../errors.ts';
import { narrowest } from '../packages/cascade.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import { weightedProduct } from '../tempered.ts';
import type { EngineGroups } from './engine-groups.ts';

/** The share of decisions that are assumed to go on from a step, where the package does not say. */
const USUAL_SHARE = 0.5;
/** Milliseconds before its deadline at which a decision that has an answer waits for no other. */
const SPARE = 25;

type Scored = Extract<ScoreOutcome, { readonly kind: 'scored' }>;

/** Asks cascades step by step, and every other model as it is. */
export class Cascades {
  readonly #revisions: Revisions;
  readonly #groups: EngineGroups;

  constructor(revisions: Revisions, groups: EngineGroups) {
    this.#revisions = revisions;
    this.#groups = groups;
  }

  /** See `Engine.score`. */
  async score(job: ScoreJob, terms: JobTerms): Promise<ScoreOutcome> {
    const revision = this.#find(job);
    if (revision?.cascade === undefined) return await this.#groups.poolOf(job).score(job, terms);
    const { tenant, keyed, signal } = terms;
    const since = performance.now();
    let open = 1;
    const released = (): void => {
      if (--open === 0) terms.released?.();
    };
    try {
      assertReady(revision);
      const steps = jobsOf(revision, job);
      const first = this.#groups.poolOf(steps[0] as ScoreJob);
      const isWhole = revision.cascade.ifAway === 'refuse';
      const after = isWhole ? this.#costAfter(revision, steps, terms) : 0;
      return await decide(revision, steps, terms.deadline, (step, deadline) => {
        open++;
        const pool = this.#groups.poolOf(step);
        const part = step === steps[0] ? { after } : { since, admitted: isWhole && pool === first };
        return pool.score(step, { deadline, tenant, keyed, signal, released }, part);
      });
    } finally {
      released();
    }
  }

  /** See `Engine.prepare`. The choices must fit every step that can be asked now. */
  async prepare(job: Omit<ScoreJob, 'input' | 'instruction'>, terms: JobTerms): Promise<PrepareOutcome> {
    const revision = this.#find(job);
    if (revision?.cascade === undefined) return await this.#groups.poolOf(job).prepare(job, terms);
    assertReady(revision);
    let away: unknown;
    let prepared = false;
    for (const { manifest } of revision.steps) {
      const step = { ...job, model: manifest.id, revision: manifest.revision };
      try {
        const outcome = await this.#groups.poolOf(step).prepare(step, terms);
        if (outcome.kind !== 'prepared') return outcome;
        prepared = true;
      } catch (error) {
        if (revision.cascade.ifAway === 'refuse' || !(error instanceof ModelUnavailable)) throw error;
        away = error;
      }
    }
    if (!prepared) throw away;
    return { kind: 'prepared' };
  }

  #find({ model, revision }: Pick<ScoreJob, 'model' | 'revision'>): Revision | undefined {
    // Brings the states of cascades up to date.
    this.#revisions.models();
    return this.#revisions.find(model, revision);
  }

  /**
   * Milliseconds that the steps after the first will take of the first one's engines, as often as they are reached.
   * @throws DeadlineTooShort if all steps, wherever they run, take longer than the deadline allows.
   */
  #costAfter({ cascade }: Revision, steps: readonly ScoreJob[], terms: JobTerms): number {
    const pool = this.#groups.poolOf(steps[0] as ScoreJob);
    let [here, all] = [0, 0];
    for (const [place, step] of steps.entries()) {
      const own = this.#groups.poolOf(step);
      const cost = (cascade?.steps[place]?.reached ?? USUAL_SHARE ** place) * own.cost(step, terms);
      all += cost;
      if (own === pool && place > 0) here += cost;
    }
    const left = terms.deadline - performance.now();
    if (all > left && left > 0) throw new DeadlineTooShort(all, left);
    return here;
  }
}

function assertReady({ state, name }: Revision): void {
  if (state !== 'ready') throw new ModelUnavailable(`${name} is not served now`, 1);
}

/**
 * Asks step after step, each of which has its job, with `ask`. @throws the error of a step that is away and cannot be
 * left out.
 */
async function decide(
  { cascade, steps }: Revision,
  jobs: readonly ScoreJob[],
  deadline: number,
  ask: (job: ScoreJob, deadline: number) => Promise<ScoreOutcome>,
): Promise<ScoreOutcome> {
  const { inputTokens: limit } = narrowest(steps.map(({ manifest }) => manifest.limits));
  const said: Scored[] = [];
  const away: string[] = [];
  let answer: { readonly probabilities: Float64Array; readonly model: string } | undefined;
  let failure: unknown;
  for (const [place, job] of jobs.entries()) {
    const { name: model } = steps[place] as Revision;
    const { sure = 0, weights } = cascade?.steps[place] ?? {};
    const isLeft = cascade?.ifAway === 'answer' && answer !== undefined;
    try {
      const outcome = await ask(job, isLeft ? deadline - SPARE : deadline);
      if (outcome.kind !== 'scored') return outcome;
      const { inputTokens: tokens } = outcome;
      if (tokens > limit) return { kind: 'input_too_long', tokens, limit, atLeast: false };
      said.push(outcome);
      // The weights are for what all steps so far say.
      const isJoined = weights !== undefined && away.length === 0;
      const all = said.map(({ probabilities }) => probabilities);
      answer = { model, probabilities: isJoined ? weightedProduct(all, weights) : outcome.probabilities };
    } catch (error) {
      // What a catalog learned needs the first step's vector.
      const isAway = isLeft ? isFailure(error) && performance.now() < deadline : job.vector !== true && isAbsent(error);
      if (cascade?.ifAway !== 'answer' || !isAway) throw error;
      away.push(model);
      failure = error;
      continue;
    }
    if (place < jobs.length - 1 && Math.max(...answer.probabilities) >= sure) break;
  }
  if (answer === undefined) throw failure;
  const { model, probabilities } = answer;
  return outcomeOf(said, probabilities, { model, away });
}

/** The job for each step. The vector is that of the first step, which every decision asks. */
function jobsOf({ steps }: Revision, job: ScoreJob): readonly ScoreJob[] {
  return steps.map(({ manifest: { id, revision } }, place) => ({
    ...job,
    model: id,
    revision,
    vector: job.vector === true && place === 0,
  }));
}

function isAbsent(error: unknown): boolean {
  return error instanceof ModelUnavailable;
}

/** Whether a step has failed, and neither has the caller left nor is the service shutting down. */
function isFailure(error: unknown): boolean {
  const kinds = [EngineFailed, EngineOverloaded, DeadlineTooShort, JobAbandoned, JobDeadlinePassed];
  return isAbsent(error) || kinds.some((kind) => error instanceof kind);
}

/** What all steps that were asked took and read together, and what the answer is. */
function outcomeOf(said: readonly Scored[], probabilities: Float64Array, step: AnsweringStep): ScoreOutcome {
  const sum = (of: (each: Scored) => number): number => said.reduce((total, each) => total + of(each), 0);
  return {
    kind: 'scored',
    probabilities,
    vector: said[0]?.vector,
    inputTokens: sum(({ inputTokens }) => inputTokens),
    unread: said.at(-1)?.unread,
    timings: {
      queue: sum(({ timings }) => timings.queue),
      tokenize: sum(({ timings }) => timings.tokenize),
      infer: sum(({ timings }) => timings.infer),
    },
    step,
  };
}
