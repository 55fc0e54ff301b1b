/**
 * How the scores of the two stages become one distribution. Features of a request, which do not depend on the order of
 * its choices, set the weights of a and b:
 *
 *     b = s − lean · l, what stage B says less what it leans to without a text
 *     z = exp(clamp(alpha · f, −5, 4.5)) · a + exp(clamp(beta · f, −5, 2)) · b   over the best choices K
 *     P = A outside K;  A(K) · softmax(z) inside;  A = softmax(a / exp(t0 + t1 ln n)) over all
 */
import { sharedOut, softmax } from '../../tempered.ts';
import { sumOf } from '../vectors.ts';

/** The features that a rule may use. */
export const FEATURE_NAMES = [
  'one',
  'ln_n',
  'a_spread',
  'a_margin',
  'b_spread',
  'b_margin',
  'agreement',
  'closeness',
  'option_tokens',
  'a_top',
  'about',
  'verdicts',
  'residual',
  'steps',
] as const;
/** The name of a feature. */
export type FeatureName = (typeof FEATURE_NAMES)[number];

/** The fitted rule of a package. */
export interface StackRule {
  readonly features: readonly FeatureName[];
  readonly alpha: readonly number[];
  readonly beta: readonly number[];
  readonly aTemperature: readonly [number, number];
  /** How much of what stage B leans to without a text is subtracted from its scores; 0: that is not computed. */
  readonly lean: number;
  /** Words that are verdicts, and the word that negates a choice; only the feature `verdicts` needs them. */
  readonly verdicts: readonly string[];
  readonly negation: string;
  /** Ways to say that none of the choices fits; only the feature `residual` and `lean` need them. */
  readonly residuals: readonly string[];
  /** Words that steps of a scale have, as `low` and `3`; only the feature `steps` needs them. */
  readonly steps: readonly string[];
}

/** What the stages say about one window. `a` and `b` are over K, in code-unit order. */
export interface WindowScores {
  readonly a: Float64Array;
  readonly b: Float64Array;
  /** The cosine of the window's vector with the instruction's; 0 if the rule does not ask for it. */
  readonly about: number;
}

/** What the windows of a request share. */
export interface RequestFacts {
  /** How many choices the request has, those outside K included. */
  readonly choices: number;
  /** Mean cosine of different choices' vectors in K. */
  readonly closeness: number;
  /** Mean tokens of a choice in K. */
  readonly optionTokens: number;
  /** Share of verdicts among the choices in K; 0 if the rule does not ask for it. */
  readonly verdicts: number;
  /** Whether a choice in K says that none fits; false if the rule does not ask for it. */
  readonly residual: boolean;
  /** Share of the choices in K that are steps of a scale; 0 if the rule does not ask for it. */
  readonly steps: number;
}

/** The logits z of the head comment, over the best choices K. */
export function stackLogits(rule: StackRule, scores: WindowScores, facts: RequestFacts): Float64Array {
  const { a, b } = scores;
  const values = features(scores, facts);
  const used = rule.features.map((name) => values[name]);
  const alpha = Math.exp(clamp(weighted(rule.alpha, used), -5, 4.5));
  const beta = Math.exp(clamp(weighted(rule.beta, used), -5, 2));
  return Float64Array.from(a, (value, i) => alpha * value + beta * (b[i] as number));
}

/** P over all choices, from a over all of them, the places of K and z over K. */
export function composeDistribution(
  rule: StackRule,
  a: Float64Array,
  best: readonly number[],
  z: Float64Array,
): Float64Array {
  const [t0, t1] = rule.aTemperature;
  const temperature = Math.exp(t0 + t1 * Math.log(a.length));
  return sharedOut(softmax(a.map((value) => value / temperature)), best, softmax(z));
}

/** Mean cosine of all pairs of `vectors`, all of length 1. */
export function closenessOf(vectors: readonly Float32Array[]): number {
  const square = sumOf(vectors).reduce((sum, value) => sum + value * value, 0);
  const count = vectors.length;
  return (square - count) / (count * (count - 1));
}

/**
 * Share of choices, as token ids, that answer the question instead of naming something: one of the `known` ones (yes,
 * no), or one that stands beside its own negation ("urgent", "not urgent").
 */
export function verdictsAmong(
  choices: readonly (readonly number[])[],
  known: readonly (readonly number[])[],
  negation: readonly number[],
): number {
  const text = (ids: readonly number[]): string => ids.join(' ');
  const words = new Set(known.map(text));
  const texts = new Set(choices.map(text));
  const not = text(negation);
  const isOne = (choice: string): boolean =>
    words.has(choice) ||
    texts.has(`${not} ${choice}`) ||
    (choice.startsWith(`${not} `) && texts.has(choice.slice(not.length + 1)));
  return choices.filter((ids) => isOne(text(ids))).length / choices.length;
}

/** Which of the choices, as token ids, are among the `residuals`. */
export function residualsAmong(
  choices: readonly (readonly number[])[],
  residuals: readonly (readonly number[])[],
): readonly boolean[] {
  const known = new Set(residuals.map((ids) => ids.join(' ')));
  return choices.map((ids) => known.has(ids.join(' ')));
}

/** Share of choices, as token ids, that have one of the `known` words. */
export function scaleStepsAmong(
  choices: readonly (readonly number[])[],
  known: readonly (readonly number[])[],
): number {
  const text = (ids: readonly number[]): string => ` ${ids.join(' ')} `;
  const words = known.map(text);
  return choices.map(text).filter((choice) => words.some((word) => choice.includes(word))).length / choices.length;
}

/**
 * l over K: how much more stage B gives a choice than the others when there is no text. A choice that says that none
 * fits is right then, so it has no leaning. `silent`: the scores for an empty text.
 */
export function leaningOf(silent: ArrayLike<number>, residual: readonly boolean[]): Float64Array {
  const scores = Float64Array.from(silent);
  const named = residual.every((is) => is) ? scores : scores.filter((_, i) => !residual[i]);
  const middle = mean(named);
  return scores.map((score, i) => (residual[i] && named !== scores ? 0 : score - middle));
}

function features({ a, b, about }: WindowScores, facts: RequestFacts): Readonly<Record<FeatureName, number>> {
  const spreadA = deviation(a);
  const spreadB = deviation(b);
  const [meanA, meanB] = [mean(a), mean(b)];
  const shared = mean(a.map((value, i) => (value - meanA) * ((b[i] as number) - meanB)));
  return {
    one: 1,
    ln_n: Math.log(facts.choices) / 3,
    a_spread: 10 * spreadA,
    a_margin: 10 * margin(a),
    b_spread: spreadB / 3,
    b_margin: Math.min(margin(b), 10) / 3,
    agreement: shared / (spreadA * spreadB + 1e-6),
    closeness: 2 * facts.closeness,
    option_tokens: Math.log(facts.optionTokens) / 2,
    a_top: 3 * Math.max(...a),
    about: 2 * about,
    verdicts: facts.verdicts,
    residual: Number(facts.residual),
    steps: facts.steps,
  };
}

function margin(values: Float64Array): number {
  const [first = 0, second = 0] = values.toSorted((x, y) => y - x);
  return first - second;
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function deviation(values: Float64Array): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}

function weighted(weights: readonly number[], values: readonly number[]): number {
  return values.reduce((sum, value, i) => sum + value * (weights[i] ?? 0), 0);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
