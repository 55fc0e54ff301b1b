/**
 * Fits a cascade: how sure each step must be to answer, and with which weights what the steps say is joined. What is
 * said of a cascade is measured on examples that were held out: each fifth is decided by what was fitted on the others.
 */
import { GREATEST_WEIGHT } from '../engine/packages/cascade.ts';
import { logOf, weightedProduct } from '../engine/tempered.ts';
import type { Spread } from './costs.ts';
import { minimise } from './lbfgs.ts';
import { judge } from './learn.ts';
import { meanOf } from './matrix.ts';
import { type AnswerQuality, type JudgedAnswer, qualityOf, type Share, wilson, Z } from './quality.ts';

/** What one step said of an example, by choices in code-unit order; the time that it took, and the tokens it read. */
export interface StepSaid {
  readonly probabilities: Float64Array;
  readonly milliseconds: number;
  readonly tokens: number;
}

/** An example, the place of its right choice, and what all steps say of it, in their order. */
export interface CascadeExample {
  readonly choices: readonly string[];
  readonly label: number;
  readonly said: readonly StepSaid[];
}

/** By step, the weights with which it is joined with those before; undefined where nothing is joined. */
type Weights = readonly (readonly number[] | undefined)[];

/** With fewer examples, a fifth of them says nothing. */
export const LEAST_EXAMPLES = 50;

/** What a cascade is to reach; with neither, nearly the accuracy that it can have, as cheaply as possible. */
export interface CascadeTarget {
  /** The share of right answers, 0 to 1. */
  readonly accuracy?: number | undefined;
  /** The share of decisions that may come to the last step, 0 to 1. */
  readonly shareOfLast?: number | undefined;
}

/** How decisions turn out. */
export interface CascadeFigures {
  readonly quality: AnswerQuality;
  /** The share that each step answers. */
  readonly shares: readonly Share[];
  readonly milliseconds: Spread;
  readonly tokens: Spread;
  /**
   * How much more often they are right than lots drawn between the steps would be in the same time: the mixture of two
   * steps that is right most often.
   */
  readonly gain: Spread;
}

/** A fitted cascade, and what is to be expected of it. */
export interface FittedCascade {
  /** Whether any thresholds reach the accuracy that was wanted. */
  readonly isMet: boolean;
  /** `reached`: the share of decisions that comes as far; `weights`: of all steps but the first, if they are joined. */
  readonly steps: readonly { readonly sure: number; readonly reached: number; readonly weights: Weights[number] }[];
  readonly isJoined: boolean;
  /** What is to be expected of answers that are joined, and of such that are not. */
  readonly joined: CascadeFigures;
  readonly apart: CascadeFigures;
  /** Each step alone. */
  readonly alone: readonly CascadeFigures[];
  /** By the share of decisions that may come to the last step, what such a cascade does at best. */
  readonly curve: readonly { readonly shareOfLast: number; readonly figures: CascadeFigures }[];
}

/** Thresholds by step, and what they did to the examples that they were tried on. */
interface Trial {
  readonly sure: readonly number[];
  readonly accuracy: number;
  readonly milliseconds: number;
  /** The share that came to the last step. */
  readonly last: number;
}

/** A decision of a cascade, and the step that made it. */
interface Decided {
  readonly place: number;
  readonly answer: JudgedAnswer;
  readonly milliseconds: number;
  readonly tokens: number;
}

const FOLDS = 5;
const CURVE = [0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1];
/** By the number of thresholds, how many values of each are tried. */
const LEVELS = [1, 101, 31, 13] as const;
/** Of its best accuracy, what a cascade without a target gives up to be cheaper. */
const TOLERATED = 0.01;

/** Fits a cascade of two to four steps. The same examples in the same order give the same result. */
export function fitCascade(examples: readonly CascadeExample[], target: CascadeTarget): FittedCascade {
  if (examples.length < LEAST_EXAMPLES) throw new RangeError(`there are fewer than ${LEAST_EXAMPLES} examples`);
  const steps = examples[0]?.said ?? [];
  const separate = (): Weights => steps.map(() => undefined);
  const alone = steps.map((_, place) => examples.map((example) => decide(example, separate(), [], place)));
  const figures = (decided: readonly Decided[]): CascadeFigures => figuresOf(decided, alone);
  const [ofApart, ofJoined] = [heldOut(examples, separate), heldOut(examples, weightsOf)];
  const [apart, joined] = [ofApart(target), ofJoined(target)];
  const better = meanWithin(
    apart.map(({ answer }, i) => logOf(joined[i]?.answer.ofLabel ?? 0) - logOf(answer.ofLabel)),
  );
  // A better distribution must not cost right answers.
  const isJoined = better.low > 0 && sumOf(joined, isRight) >= sumOf(apart, isRight);
  const weights = (isJoined ? weightsOf : separate)(examples);
  const { sure, accuracy } = chosen(trialsOf(examples, weights), target);
  const decided = isJoined ? joined : apart;
  return {
    isMet: accuracy >= (target.accuracy ?? 0),
    steps: sure.map((least, place) => {
      const reached = rounded(decided.filter((each) => each.place >= place).length / decided.length);
      return { sure: least, reached, weights: weights[place] };
    }),
    isJoined,
    joined: figures(joined),
    apart: figures(apart),
    alone: alone.map(figures),
    curve: CURVE.map((shareOfLast) => {
      return { shareOfLast, figures: figures((isJoined ? ofJoined : ofApart)({ shareOfLast })) };
    }),
  };
}

/** The trial that reaches the target in the least time, or that comes nearest to it. */
function chosen(trials: readonly Trial[], { accuracy, shareOfLast }: CascadeTarget): Trial {
  const within = trials.filter(({ last }) => last <= (shareOfLast ?? 1));
  const best = Math.max(...within.map((each) => each.accuracy));
  const least = Math.min(best, accuracy ?? best - (shareOfLast === undefined ? TOLERATED : 0));
  const enough = within.filter((each) => each.accuracy >= least);
  return enough.reduce((one, other) => (other.milliseconds < one.milliseconds ? other : one));
}

/** Decides every example for a target by what was learned of the other folds. */
function heldOut(
  examples: readonly CascadeExample[],
  lesson: (examples: readonly CascadeExample[]) => Weights,
): (target: CascadeTarget) => readonly Decided[] {
  const folds = Array.from({ length: FOLDS }, (_, fold) => {
    const others = examples.filter((_, i) => i % FOLDS !== fold);
    const weights = lesson(others);
    return { weights, trials: trialsOf(others, weights) };
  });
  return (target) => {
    const sure = folds.map(({ trials }) => chosen(trials, target).sure);
    return examples.map((example, i) => decide(example, folds[i % FOLDS]?.weights ?? [], sure[i % FOLDS] ?? []));
  };
}

/** Decides as the cascade does; `from`: the first step that is asked. */
function decide({ said, ...example }: CascadeExample, weights: Weights, sure: readonly number[], from = 0): Decided {
  for (let place = from; ; place++) {
    const answer = answerOf({ said, ...example }, place, weights[place]);
    if (answer.confidence < (sure[place] ?? 0)) continue;
    const asked = said.slice(from, place + 1);
    const [milliseconds, tokens] = [sumOf(asked, (each) => each.milliseconds), sumOf(asked, (each) => each.tokens)];
    return { place, answer, milliseconds, tokens };
  }
}

/** Tries thresholds that are evenly spread over each step's confidences. */
function trialsOf(examples: readonly CascadeExample[], weights: Weights): readonly Trial[] {
  const last = weights.length - 1;
  const levels = LEVELS[last] ?? 1;
  const answers = weights.map((own, place) => examples.map((example) => answerOf(example, place, own)));
  const candidates = answers.map((own, place) => {
    const sorted = own.map(({ confidence }) => confidence).toSorted((a, b) => a - b);
    const at = (level: number): number => sorted[Math.floor((level / (levels - 1)) * sorted.length)] ?? 1;
    return place === last ? [0] : [0, ...new Set(Array.from({ length: levels - 1 }, (_, i) => rounded(at(i + 1))))];
  });
  const combinations = candidates.reduce<readonly (readonly number[])[]>(
    (some, own) => some.flatMap((sure) => own.map((each) => [...sure, each])),
    [[]],
  );
  return combinations.map((sure) => {
    let [right, milliseconds, atLast] = [0, 0, 0];
    for (const [i, { said }] of examples.entries()) {
      for (const [place, own] of answers.entries()) {
        const { confidence, choice, label } = own[i] as JudgedAnswer;
        milliseconds += (said[place] as StepSaid).milliseconds;
        if (place === last) atLast++;
        if (confidence < (sure[place] as number)) continue;
        right += Number(choice === label);
        break;
      }
    }
    const { length } = examples;
    return { sure, accuracy: right / length, milliseconds: milliseconds / length, last: atLast / length };
  });
}

function figuresOf(decided: readonly Decided[], alone: readonly (readonly Decided[])[]): CascadeFigures {
  const time = (all: readonly Decided[]): number => meanOf(all.map(({ milliseconds }) => milliseconds));
  const limit = time(decided);
  // The first step, which every cascade asks, is never slower.
  const mixtures = alone
    .filter((one, place) => place === 0 || time(one) <= limit)
    .flatMap((one) =>
      alone.map((other) => {
        const part = time(other) <= limit ? 1 : Math.max(0, (limit - time(one)) / (time(other) - time(one)));
        return one.map((each, i) => (1 - part) * isRight(each) + part * isRight(other[i]));
      }),
    );
  const lots = mixtures.reduce((a, b) => (meanOf(b) > meanOf(a) ? b : a));
  const answered = (step: number): number => decided.filter(({ place }) => place === step).length;
  return {
    quality: qualityOf(decided.map(({ answer }) => answer)),
    shares: alone.map((_, step) => wilson(answered(step), decided.length)),
    milliseconds: meanWithin(decided.map(({ milliseconds }) => milliseconds)),
    tokens: meanWithin(decided.map(({ tokens }) => tokens)),
    gain: meanWithin(decided.map((each, i) => isRight(each) - (lots[i] ?? 0))),
  };
}

/** A mean with its 95 % interval. */
function meanWithin(values: readonly number[]): Spread {
  const value = meanOf(values);
  const variance = sumOf(values, (each) => (each - value) ** 2) / Math.max(1, values.length - 1);
  const reach = Z * Math.sqrt(variance / values.length);
  return { value, low: value - reach, high: value + reach };
}

/** 1 for a right answer, 0 for a wrong one. */
function isRight(decided: Decided | undefined): number {
  return Number(decided?.answer.label === decided?.answer.choice);
}

function sumOf<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((sum, value) => sum + of(value), 0);
}

// What the steps say is joined by a logarithmic opinion pool, with the weights that make the right choices of examples
// most probable.

/** Significant digits of what is fitted. */
const DIGITS = 4;

/** What the cascade would answer at a step. */
function answerOf(example: CascadeExample, place: number, weights: Weights[number]): JudgedAnswer {
  const { choices, label } = example;
  const all = saidUpTo(example, place);
  const found = weights === undefined ? all[place] : weightedProduct(all, weights);
  return judge(choices, label, (k) => found?.[k] ?? 0);
}

/** By step, the weights that make the right choices most probable; none of the first. */
function weightsOf(examples: readonly CascadeExample[]): Weights {
  return (examples[0]?.said ?? []).map((_, place) => (place === 0 ? undefined : weightsAt(examples, place)));
}

/** Fits logarithms of weights, which are pulled to a half for each step before this one, and to one for this one. */
function weightsAt(examples: readonly CascadeExample[], place: number): readonly number[] {
  const usual = Float64Array.from({ length: place + 1 }, (_, j) => (j === place ? 0 : Math.log(0.5)));
  const rows = examples.map((example) => {
    const all = saidUpTo(example, place);
    return { label: example.label, all, logs: all.map((own) => own.map(logOf)) };
  });
  const objective = (at: Float64Array, gradient: Float64Array): number => {
    const weights = Array.from(at, Math.exp);
    const away = at.map((each, j) => each - (usual[j] as number));
    gradient.set(away.map((each) => 2 * each));
    let loss = away.reduce((sum, each) => sum + each ** 2, 0);
    for (const { label, all, logs } of rows) {
      const product = weightedProduct(all, weights);
      loss -= Math.log(Math.max(1e-12, product[label] ?? 0));
      for (const [j, own] of logs.entries()) {
        const mean = own.reduce((sum, log, k) => sum + log * (product[k] as number), 0);
        gradient[j] = (gradient[j] as number) + (weights[j] as number) * (mean - (own[label] as number));
      }
    }
    return loss;
  };
  const at = usual.slice();
  minimise(objective, at, { curvature: usual.map(() => examples.length), mostSteps: 60, tolerance: 1e-7 });
  return Array.from(at, (each) => rounded(Math.min(GREATEST_WEIGHT, Math.exp(each))));
}

function saidUpTo({ said }: CascadeExample, place: number): readonly Float64Array[] {
  return said.slice(0, place + 1).map(({ probabilities }) => probabilities);
}

/** A fitted number as it is written down. */
function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}
