/**
 * Decisions of cascades. Each step is asked as an ordinary job of its own model's queue, so that limits, fairness and
 * admission are those of every job; the next one only if the answer so far is less sure than the step's `sure`. All
 * other jobs are passed on. Unless steps may be left out, a decision is admitted as a whole, and its later jobs wait
 * behind nothing that came after it: behind a full queue they would never be done in time.
 *
 * A step is away if its model cannot be served, or if it fails or has no room in time when there is an answer already.
 * With `if_away: answer` the others decide; an overloaded first step is no reason to send all decisions to the next.
 */
import type { JobTerms, PrepareOutcome, Scored, ScoreJob, ScoreOutcome } from '../engine.ts';
import {
  DeadlineTooShort,
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../errors.ts';
import { type Cascade, type CascadeStep, narrowest } from '../packages/cascade.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import { weightedProduct } from '../tempered.ts';
import type { EngineGroups } from './engine-groups.ts';
import { callerOf, LearntOfCallers } from './estimates.ts';

/** Milliseconds before its deadline at which a decision that has an answer waits for no other. */
const SPARE = 25;

/** A step and its job in a decision; `model` is `<id>@<revision>`. */
interface Step extends CascadeStep {
  readonly job: ScoreJob;
}

/** Asks cascades step by step, and every other model as it is. */
export class Cascades {
  readonly #revisions: Revisions;
  readonly #groups: EngineGroups;
  /** How often each step is reached, by its place: at first as often as the package says. */
  readonly #reached = new WeakMap<Revision, readonly LearntOfCallers[]>();

  constructor(revisions: Revisions, groups: EngineGroups) {
    this.#revisions = revisions;
    this.#groups = groups;
  }

  /** See `Engine.score`. */
  score(job: ScoreJob, terms: JobTerms): Promise<ScoreOutcome> {
    const revision = this.#find(job);
    if (revision?.cascade === undefined) return this.#groups.poolOf(job).score(job, terms);
    return this.#decide(revision, revision.cascade, job, terms);
  }

  /** See `Engine.prepare`. The choices must fit every step that can be asked now. */
  async prepare(job: Omit<ScoreJob, 'input' | 'instruction'>, terms: JobTerms): Promise<PrepareOutcome> {
    const revision = this.#find(job);
    if (revision?.cascade === undefined) return await this.#groups.poolOf(job).prepare(job, terms);
    assertReady(revision);
    const away: Error[] = [];
    for (const { manifest } of revision.steps) {
      const step = { ...job, model: manifest.id, revision: manifest.revision };
      try {
        const outcome = await this.#groups.poolOf(step).prepare(step, terms);
        if (outcome.kind !== 'prepared') return outcome;
      } catch (error) {
        if (revision.cascade.ifAway === 'refuse' || !(error instanceof ModelUnavailable)) throw error;
        away.push(error);
      }
    }
    if (away.length === revision.steps.length) throw away.at(-1);
    return { kind: 'prepared' };
  }

  #find({ model, revision }: Pick<ScoreJob, 'model' | 'revision'>): Revision | undefined {
    const found = this.#revisions.find(model, revision);
    if (found?.cascade === undefined) return found;
    // Brings the states of cascades up to date.
    this.#revisions.models();
    return this.#revisions.find(model, revision);
  }

  async #decide(revision: Revision, cascade: Cascade, job: ScoreJob, terms: JobTerms): Promise<ScoreOutcome> {
    const { tenant, keyed, signal } = terms;
    const since = performance.now();
    let open = 1;
    const released = (): void => {
      if (--open === 0) terms.released?.();
    };
    try {
      assertReady(revision);
      const steps = stepsOf(revision, cascade, job);
      const pool = this.#groups.poolOf((steps[0] as Step).job);
      const isWhole = cascade.ifAway === 'refuse';
      const reached = this.#reachedOf(revision, cascade);
      const after = isWhole ? this.#costAfter(steps, reached, terms) : 0;
      const { inputTokens: limit } = narrowest(revision.steps.map(({ manifest }) => manifest.limits));
      const caller = callerOf(terms);
      let asked = 0;
      const outcome = await decide({ steps, limit, isWhole, deadline: terms.deadline }, (step, deadline) => {
        open++;
        reached[asked++]?.see(caller, 1);
        const own = this.#groups.poolOf(step.job);
        const part = step === steps[0] ? { after } : { since, admitted: isWhole && own === pool };
        return own.score(step.job, { deadline, tenant, keyed, signal, released }, part);
      });
      if (outcome.kind === 'scored') for (const each of reached.slice(asked)) each.see(caller, 0);
      return outcome;
    } finally {
      released();
    }
  }

  #reachedOf(revision: Revision, { steps }: Cascade): readonly LearntOfCallers[] {
    let learnt = this.#reached.get(revision);
    if (learnt === undefined) {
      learnt = steps.map(({ reached }) => new LearntOfCallers(reached));
      this.#reached.set(revision, learnt);
    }
    return learnt;
  }

  /**
   * Milliseconds that the steps after the first will take of the first one's engines, as often as they are reached.
   * @throws DeadlineTooShort if all steps, wherever they run, take longer than the deadline allows.
   */
  #costAfter(steps: readonly Step[], reached: readonly LearntOfCallers[], terms: JobTerms): number {
    const caller = callerOf(terms);
    const costs = steps.map(({ job }, place) => {
      const pool = this.#groups.poolOf(job);
      return { pool, cost: (reached[place]?.of(caller) ?? 1) * pool.cost(job, terms) };
    });
    const sumOf = (some: typeof costs): number => some.reduce((sum, { cost }) => sum + cost, 0);
    const [all, left] = [sumOf(costs), terms.deadline - performance.now()];
    if (all > left && left > 0) throw new DeadlineTooShort(all, left);
    return sumOf(costs.slice(1).filter(({ pool }) => pool === costs[0]?.pool));
  }
}

function assertReady({ state, name }: Revision): void {
  if (state !== 'ready') throw new ModelUnavailable(`${name} is not served now`, 1);
}

/** Each step with its job. The vector is that of the first step, which every decision asks. */
function stepsOf({ steps }: Revision, cascade: Cascade, job: ScoreJob): readonly Step[] {
  return steps.map(({ name, manifest: { id, revision } }, place) => ({
    ...(cascade.steps[place] as CascadeStep),
    model: name,
    job: { ...job, model: id, revision, vector: job.vector === true && place === 0 },
  }));
}

/** A decision. `limit`: of the input's tokens, in each step; `isWhole`: no step may be left out. */
interface Decision {
  readonly steps: readonly Step[];
  readonly limit: number;
  readonly isWhole: boolean;
  readonly deadline: number;
}

/** Asks step after step with `ask`. @throws the error of a step that is away and cannot be left out. */
async function decide(
  { steps, limit, isWhole, deadline }: Decision,
  ask: (step: Step, deadline: number) => Promise<ScoreOutcome>,
): Promise<ScoreOutcome> {
  const said: Scored[] = [];
  const away: string[] = [];
  let answer: (Pick<Scored, 'probabilities'> & { readonly model: string }) | undefined;
  let failure: unknown;
  for (const step of steps) {
    const { model, job, sure, weights } = step;
    const hasAnswer = answer !== undefined;
    try {
      const outcome = await ask(step, hasAnswer && !isWhole ? deadline - SPARE : deadline);
      if (outcome.kind !== 'scored') return outcome;
      const { inputTokens: tokens } = outcome;
      if (tokens > limit) return { kind: 'input_too_long', tokens, limit, atLeast: false };
      said.push(outcome);
      // The weights are for what all steps so far say.
      const isJoined = weights !== undefined && away.length === 0;
      const all = said.map(({ probabilities }) => probabilities);
      answer = { model, probabilities: isJoined ? weightedProduct(all, weights) : outcome.probabilities };
      if (Math.max(...answer.probabilities) >= sure) break;
    } catch (error) {
      // What a catalog learned needs the first step's vector.
      const isAway = hasAnswer ? isFailure(error) && performance.now() < deadline : !job.vector && isAbsent(error);
      if (isWhole || !isAway) throw error;
      away.push(model);
      failure = error;
    }
  }
  if (answer === undefined) throw failure;
  const { model, probabilities } = answer;
  return { ...allOf(said), probabilities, step: { model, away } };
}

function isAbsent(error: unknown): boolean {
  return error instanceof ModelUnavailable;
}

/** Whether a step has failed, and neither has the caller left nor is the service shutting down. */
function isFailure(error: unknown): boolean {
  const kinds = [EngineFailed, EngineOverloaded, DeadlineTooShort, JobAbandoned, JobDeadlinePassed];
  return isAbsent(error) || kinds.some((kind) => error instanceof kind);
}

/** What all steps that were asked took and read together. */
function allOf(said: readonly Scored[]): Omit<Scored, 'probabilities'> {
  const sum = (of: (each: Scored) => number): number => said.reduce((total, each) => total + of(each), 0);
  return {
    kind: 'scored',
    vector: said[0]?.vector,
    inputTokens: sum(({ inputTokens }) => inputTokens),
    unread: said.at(-1)?.unread,
    timings: {
      queue: sum(({ timings }) => timings.queue),
      tokenize: sum(({ timings }) => timings.tokenize),
      infer: sum(({ timings }) => timings.infer),
    },
  };
}
