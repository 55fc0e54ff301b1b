/** Estimates what jobs take: from the profile that their model's family measured, and from what earlier jobs took. */
import { LRUCache } from 'lru-cache';
import type { CostProfile, JobSize } from '../cost-profile.ts';
import type { JobTerms, ScoreJob } from '../engine.ts';
import { jobCost } from '../job-cost.ts';
import type { Revision } from '../packages/revisions.ts';
import type { ScoredResult } from '../worker/messages.ts';

/** What is known of a job before it is tokenised. */
export interface JobShape {
  readonly revision: Revision;
  /** Whose job it is: a name that a caller with a key shares with none without. */
  readonly caller: string;
  /** Characters of input and instruction. */
  readonly premiseLength: number;
  readonly choices: number;
  /** Characters of all choices. */
  readonly choicesLength: number;
}

/** The shape of the job that a caller's request asks for. */
export function shapeOf(
  request: Pick<ScoreJob, 'input' | 'instruction' | 'choices'>,
  revision: Revision,
  { keyed, tenant }: Pick<JobTerms, 'keyed' | 'tenant'>,
): JobShape {
  const { input, instruction, choices } = request;
  let choicesLength = 0;
  for (const choice of choices) choicesLength += choice.length;
  const caller = callerOf({ keyed, tenant });
  return { revision, caller, premiseLength: input.length + instruction.length, choices: choices.length, choicesLength };
}

/** The name by which what was learnt of a caller's texts is kept. */
export function callerOf({ keyed, tenant }: Pick<JobTerms, 'keyed' | 'tenant'>): string {
  return `${keyed ? 'key' : 'address'} ${tenant}`;
}

const LEARNING_RATE = 0.05;
// Assumed before a model has run: four characters make a token, and the profile is right.
const USUAL_DENSITY = 0.25;
const USUAL_SLOWNESS = 1;
// A text may have more tokens than characters, but whoever sends such texts must not make the next one seem endless.
const MOST_DENSITY = 1;
// Callers of a model whose texts are remembered; beyond it those that were idle longest are forgotten.
const MAX_CALLERS = 4096;
// Milliseconds without an observation after which half of what was learnt is forgotten. What is refused for its
// estimated cost is not observed, so without this a stall that has passed, or texts that were denser than the next one,
// could refuse large jobs for ever. Those in which an engine is at work do not count: of jobs that take long, or are
// stopped at their deadlines, few are observed, and a slow engine would be taken for a fast one when it is overloaded.
const SLOWNESS_HALF_LIFE = 5_000;
const TEXTS_HALF_LIFE = 60_000;
// Milliseconds to tokenise a character, also of a text that turns out to be too long.
const PER_CHARACTER = 0.0004;
const UNKNOWN_COST = 50;

/**
 * A number that moves a little towards what is seen, and back to `usual` while nothing is: half of the way in each
 * `halfLife`. `clock` gives milliseconds.
 */
class Learnt {
  readonly #usual: number;
  readonly #halfLife: number;
  readonly #clock: () => number;
  #excess = 0;
  #at = 0;

  constructor(usual: number, halfLife: number, clock: () => number) {
    this.#usual = usual;
    this.#halfLife = halfLife;
    this.#clock = clock;
  }

  get value(): number {
    return this.#excess === 0
      ? this.#usual
      : this.#usual + this.#excess * 0.5 ** ((this.#clock() - this.#at) / this.#halfLife);
  }

  /** Notes that for so many milliseconds nothing could be seen: nothing is forgotten for them. */
  wait(milliseconds: number): void {
    this.#at = Math.min(this.#clock(), this.#at + milliseconds);
  }

  see(seen: number): void {
    const { value } = this;
    this.#excess = value + LEARNING_RATE * (seen - value) - this.#usual;
    this.#at = this.#clock();
  }
}

/** What was learnt of each caller's texts, so that nobody pays for the texts of others. */
export class LearntOfCallers {
  readonly #usual: number;
  readonly #clock: () => number;
  // With `maxSize` and not `max`, with which the cache would allocate memory for all callers at once.
  readonly #callers = new LRUCache<string, Learnt>({ maxSize: MAX_CALLERS, sizeCalculation: () => 1 });

  /** `usual`: the number for a caller of whom nothing is known. */
  constructor(usual: number, clock: () => number = () => performance.now()) {
    this.#usual = usual;
    this.#clock = clock;
  }

  of(caller: string): number {
    return this.#callers.get(caller)?.value ?? this.#usual;
  }

  see(caller: string, seen: number): void {
    const learnt = this.#callers.get(caller) ?? new Learnt(this.#usual, TEXTS_HALF_LIFE, this.#clock);
    learnt.see(seen);
    this.#callers.set(caller, learnt);
  }
}

/** What has been learnt about a model. */
class Experience {
  /** Tokens per character of each caller's texts. */
  readonly densities: LearntOfCallers;
  /**
   * Elapsed time divided by the CPU time of the profile: above 1 when engines share their cores or wait for the pool.
   */
  readonly slowness: Learnt;

  constructor(clock: () => number) {
    this.densities = new LearntOfCallers(USUAL_DENSITY, clock);
    this.slowness = new Learnt(USUAL_SLOWNESS, SLOWNESS_HALF_LIFE, clock);
  }
}

/**
 * Estimates in milliseconds of one engine, without experience at first. What they learn about a model is forgotten with
 * its revision.
 */
export class Estimates {
  readonly #clock: () => number;
  readonly #experiences = new WeakMap<Revision, Experience>();

  /** `clock` gives milliseconds. */
  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  /** `encoded`: whether the engine that will run it has encoded the choices before. */
  cost(shape: JobShape, encoded: boolean): number {
    const { revision, premiseLength, choices, choicesLength } = shape;
    const { profile, manifest } = revision;
    if (choices === 0) return readingCost(shape, 0);
    if (profile === undefined) return UNKNOWN_COST;
    const { densities, slowness } = this.#experienceOf(revision);
    const density = densities.of(shape.caller);
    const misses = encoded && profile.choicesCached ? 0 : choices;
    const size = sizeOf(shape, premiseLength * density, misses, (choicesLength / choices) * density);
    return slowness.value * (jobCost(manifest.family, profile, size) + readingCost(shape, misses));
  }

  /** Notes that a job kept its engine for `occupied` milliseconds, whatever became of it; to be called first. */
  occupied({ revision }: JobShape, occupied: number): void {
    this.#experienceOf(revision).slowness.wait(occupied);
  }

  /** Learns from a job that ran and that kept its engine for `occupied` milliseconds, messages included. */
  observe(shape: JobShape, { inputTokens, encoded, choiceTokens }: ScoredResult, occupied: number): void {
    const { revision, caller, premiseLength, choices, choicesLength } = shape;
    const profile: CostProfile | undefined = revision.profile;
    // A job that only reads says nothing about what decisions take.
    if (profile === undefined || choices === 0) return;
    const { densities, slowness } = this.#experienceOf(revision);
    const density = densities.of(caller);
    const misses = profile.choicesCached ? encoded : choices;
    const size = sizeOf(shape, inputTokens, misses, choiceTokens ?? (choicesLength / choices) * density);
    const expected = jobCost(revision.manifest.family, profile, size) + readingCost(shape, misses);
    slowness.see(Math.min(50, Math.max(0.2, occupied / expected)));
    densities.see(caller, Math.min(MOST_DENSITY, inputTokens / Math.max(1, premiseLength)));
  }

  #experienceOf(revision: Revision): Experience {
    let experience = this.#experiences.get(revision);
    if (experience === undefined) {
      experience = new Experience(this.#clock);
      this.#experiences.set(revision, experience);
    }
    return experience;
  }
}

function sizeOf({ revision, choices }: JobShape, tokens: number, encoded: number, choiceTokens: number): JobSize {
  const { inputTokens, candidateTokens } = revision.manifest.limits;
  return {
    premiseTokens: Math.min(tokens, inputTokens),
    choices,
    uncached: encoded,
    choiceTokens: Math.min(choiceTokens, candidateTokens),
  };
}

/** Milliseconds to read the texts when `uncached` of the choices must be encoded. */
function readingCost({ premiseLength, choices, choicesLength }: JobShape, uncached: number): number {
  const unread = choices === 0 ? 0 : (choicesLength * uncached) / choices;
  return (premiseLength + unread) * PER_CHARACTER;
}
