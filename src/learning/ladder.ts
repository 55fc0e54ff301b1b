/**
 * The ladder of what can be learned, from least to most: the model as it is, a temperature, a bias for each choice,
 * weights on the vector of the text. A rung is taken only if, on examples that were held out, it beats the one taken
 * before by more than the standard error of the difference. Where some of the examples are there to judge by, all are
 * fitted to, and those alone judge; where some have a veto, no rung is taken that is worse on them, and the temperature
 * is theirs. Temperatures come from a golden-section search, and so does that of a whole model.
 */

import { beforeMap, contrasted } from './contrast.ts';
import { meanOf } from './matrix.ts';
import {
  COMPARING,
  fitParameters,
  logitsOf,
  type Parameters,
  type Pulls,
  type RegressionData,
  type ScoredExample,
  toProbabilities,
} from './regression.ts';

/** A rung of the ladder, from the model as it is to weights on the text's vector. */
export type Rung = 'zero-shot' | 'temperature' | 'bias' | 'weights';

/** How a rung did on held-out examples. */
export interface RungResult {
  readonly rung: Rung;
  /** The mean loss of the judging examples: -ln of the right choice's probability, or a cross-entropy. */
  readonly logLoss: number;
  readonly accuracy: number;
  /** By how much the log loss falls against the rung taken before, and the standard error of that. */
  readonly gain: number;
  readonly error: number;
  readonly taken: boolean;
}

/** The rung that was taken, what was fitted on it, and how each rung did on held-out examples. */
export interface Learning {
  readonly rung: Rung;
  readonly parameters: Parameters;
  readonly rungs: readonly RungResult[];
  /** Held-out probabilities [choices, examples], before and after. */
  readonly before: Float64Array;
  readonly after: Float64Array;
}

/** Held-out predictions of a candidate. */
interface HeldOut {
  readonly pulls: Pulls | undefined;
  /** What its logits are divided by at the end; 1 for the model as it is. */
  readonly temperature: number;
  readonly logits: Float64Array;
  readonly probabilities: Float64Array;
  /** Of the judging examples, in their order. */
  readonly losses: Float64Array;
  readonly logLoss: number;
  readonly accuracy: number;
}

const FOLDS = 5;
/** With this many examples, which are few, a gain must be twice its standard error and the model's scale stays 1. */
const FEW = 16;
const TEMPERATURE_STEPS = 12;
const BIAS_PULLS = [10, 1];
/** The pull on weights. Others are no better: the scale and the temperature make up for the difference. */
const WEIGHT_PULL = 0.15;
/** The pulls that are tried where a model said what the examples are: the more it errs, the stronger the best one. */
const TAUGHT_WEIGHT_PULLS = [WEIGHT_PULL, 1];
/** The scales of the model's own logarithms that are tried beside weights. */
const WEIGHT_SCALES = [1, 0.5, 0.25, 0.125];
/** The pull on the bias beside weights. */
const BIAS_BESIDE_WEIGHTS = 1;

/** Takes each rung that pays. The same examples in the same order give the same result. */
export function climb(data: RegressionData): Learning {
  const folds = foldsOf(data);
  const biased = !isStratified(data);
  const { vetoes } = data;
  const byVeto = (found: HeldOut): HeldOut =>
    vetoes === undefined ? found : judged({ ...data, judges: vetoes }, folds, found.pulls, found.logits);
  const before = judged(data, folds, undefined, data.logs);
  const beforeByVeto = byVeto(before);
  let [current, currentByVeto] = [before, beforeByVeto];
  let rung: Rung = 'zero-shot';
  const rungs: RungResult[] = [resultOf('zero-shot', before, before, true)];
  const attempt = (name: Rung, found: HeldOut): void => {
    const { gain, error } = gainOf(current, found);
    const better = gain > (1 + (FEW / data.judges.length) ** 3) * error;
    const foundByVeto = byVeto(found);
    const vetoed = gainOf(currentByVeto, foundByVeto).gain < 0;
    // A better distribution must not cost right answers.
    const costs = found.accuracy < before.accuracy || foundByVeto.accuracy < beforeByVeto.accuracy;
    const taken = better && !vetoed && !costs;
    rungs.push(resultOf(name, current, found, taken));
    if (taken) [current, currentByVeto, rung] = [found, foundByVeto, name];
  };
  attempt('temperature', best(data, folds, [{ scale: 1 }]));
  const biases = BIAS_PULLS.map((bias) => ({ scale: 1, bias }));
  if (biased) attempt('bias', best(data, folds, biases));
  const least = Math.min(1, FEW / data.examples);
  const scales = [...new Set(WEIGHT_SCALES.map((scale) => Math.max(scale, least)))];
  const bias = biased ? { bias: BIAS_BESIDE_WEIGHTS } : {};
  const pulls = data.taught ? TAUGHT_WEIGHT_PULLS : [WEIGHT_PULL];
  const weights = pulls.flatMap((pull) => scales.map((scale) => ({ scale, weights: pull, ...bias })));
  if (data.vectors !== undefined) attempt('weights', best(data, folds, weights));
  const after = currentByVeto.probabilities;
  return { rung, parameters: fitted(data, currentByVeto), rungs, before: before.probabilities, after };
}

/** The parameters fitted to all examples, at the temperature that was best for held-out ones. */
function fitted(data: RegressionData, { pulls, temperature }: HeldOut): Parameters {
  if (pulls === undefined) return identity(data.choices);
  const counts = new Int32Array(data.examples).fill(1);
  return fitOf(data, counts, pulls).map((value) => value / temperature);
}

function fitOf(data: RegressionData, counts: Int32Array, pulls: Pulls): Parameters {
  if (pulls.weights === undefined)
    return pulls.bias === undefined ? identity(data.choices) : fitParameters(data, counts, pulls);
  const contrast = contrasted(data, counts);
  return beforeMap(contrast, fitParameters(contrast.data, counts, pulls));
}

function identity(choices: number): Parameters {
  const parameters = new Float64Array(1 + choices);
  parameters[0] = 1;
  return parameters;
}

/**
 * Whether the examples were picked so that each choice has equally many: how often a choice occurs in them then says
 * nothing of how often it will.
 */
export function isStratified({ labels, choices }: RegressionData): boolean {
  const counts = new Array<number>(choices).fill(0);
  for (const label of labels) counts[label] = (counts[label] as number) + 1;
  const some = counts.filter((count) => count > 0);
  const most = Math.max(...some);
  return 2 * some.filter((count) => count === most).length > some.length;
}

/** The fold of each example: the examples of one choice are spread over all folds. */
function foldsOf({ labels, examples }: RegressionData): Int32Array {
  const folds = new Int32Array(examples);
  const order = Array.from(labels, (label, i) => ({ label, i })).sort((a, b) => a.label - b.label || a.i - b.i);
  for (const [place, { i }] of order.entries()) folds[i] = place % FOLDS;
  return folds;
}

/** The candidate with the least held-out loss: each fold is decided by what is fitted to the others. */
function best(data: RegressionData, folds: Int32Array, candidates: readonly Pulls[]): HeldOut {
  const logits = candidates.map(() => new Float64Array(data.logs.length));
  for (let fold = 0; fold < FOLDS; fold++) {
    const counts = folds.map((of) => (of === fold ? 0 : 1));
    const hasWeights = candidates.some(({ weights }) => weights !== undefined);
    const fitting = hasWeights ? contrasted(data, counts).data : data;
    let near = identity(data.choices);
    for (const [place, pulls] of candidates.entries()) {
      const hasFit = pulls.bias !== undefined || pulls.weights !== undefined;
      if (hasFit) near = fitParameters(fitting, counts, pulls, COMPARING, near);
      copyWhere(data, folds, fold, logitsOf(fitting, near), logits[place] as Float64Array);
    }
  }
  return candidates
    .map((pulls, place) => judged(data, folds, pulls, logits[place] as Float64Array))
    .reduce((least, each) => (each.logLoss < least.logLoss ? each : least));
}

/** Held-out logits, at the temperature that is best for the other folds. `pulls` undefined: the model as it is. */
function judged(data: RegressionData, folds: Int32Array, pulls: Pulls | undefined, logits: Float64Array): HeldOut {
  const probabilities = logits.slice();
  for (let fold = 0; fold < FOLDS && pulls !== undefined; fold++) {
    const others = data.judges.filter((i) => folds[i] !== fold);
    const temperature = temperatureOf(data, logits, others);
    const tempered = logits.map((value) => value / temperature);
    copyWhere(data, folds, fold, tempered, probabilities);
  }
  const all = toProbabilities(data, probabilities);
  const losses = Float64Array.from(data.judges, (i) => all[i] as number);
  const temperature = pulls === undefined ? 1 : temperatureOf(data, logits, data.judges);
  const accuracy = accuracyOf(data, probabilities);
  return { pulls, temperature, logits, probabilities, losses, logLoss: meanOf(losses), accuracy };
}

function copyWhere(data: RegressionData, folds: Int32Array, fold: number, from: Float64Array, to: Float64Array): void {
  const { examples } = data;
  for (let place = 0; place < to.length; place++)
    if (folds[place % examples] === fold) to[place] = from[place] as number;
}

/** The temperature with the least loss on some examples, drawn a little towards 1. */
function temperatureOf(data: RegressionData, logits: Float64Array, some: Int32Array): number {
  const loss = (lnT: number): number => {
    const losses = toProbabilities(
      data,
      logits.map((value) => value / Math.exp(lnT)),
    );
    return some.reduce((sum, i) => sum + (losses[i] as number), lnT ** 2);
  };
  return Math.exp(goldenSection(loss, -2, 2, TEMPERATURE_STEPS));
}

function gainOf(from: HeldOut, to: HeldOut): { readonly gain: number; readonly error: number } {
  const gains = from.losses.map((loss, i) => loss - (to.losses[i] as number));
  const gain = meanOf(gains);
  const variance = gains.reduce((sum, each) => sum + (each - gain) ** 2, 0) / Math.max(1, gains.length - 1);
  return { gain, error: Math.sqrt(variance / gains.length) };
}

function resultOf(rung: Rung, from: HeldOut, to: HeldOut, taken: boolean): RungResult {
  return { rung, logLoss: to.logLoss, accuracy: to.accuracy, ...gainOf(from, to), taken };
}

/** Share of the judging examples whose label has the highest probability. */
function accuracyOf({ examples, choices, labels, judges }: RegressionData, probabilities: Float64Array): number {
  let right = 0;
  for (const i of judges) {
    const own = probabilities[(labels[i] as number) * examples + i] as number;
    let higher = false;
    for (let k = 0; k < choices && !higher; k++)
      higher = k !== labels[i] && (probabilities[k * examples + i] as number) >= own;
    if (!higher) right++;
  }
  return right / judges.length;
}

const RATIO = (Math.sqrt(5) - 1) / 2;

/** Searches from `low` to `high`. Every step leaves .618 of the interval; the middle of the last one is the answer. */
function goldenSection(loss: (at: number) => number, low: number, high: number, steps: number): number {
  let [from, to] = [low, high];
  let [left, right] = [to - RATIO * (to - from), from + RATIO * (to - from)];
  let [atLeft, atRight] = [loss(left), loss(right)];
  for (let step = 0; step < steps; step++) {
    if (atLeft < atRight) {
      [to, right, atRight] = [right, left, atLeft];
      left = to - RATIO * (to - from);
      atLeft = loss(left);
    } else {
      [from, left, atLeft] = [left, right, atRight];
      right = from + RATIO * (to - from);
      atRight = loss(right);
    }
  }
  return (from + to) / 2;
}

/** A temperature lies between e^-7 and e^7. */
const FARTHEST = 7;
/** Steps of the search, which leave less than a millionth of the interval. */
const STEPS = 32;
/** Lower probabilities count as this one, since 0 has no logarithm. */
const LEAST = 1e-300;

/**
 * The temperature with the least loss on what a model said at the temperature 1, drawn a little towards the usual one:
 * where every answer is right, the examples alone would have no best temperature.
 */
export function fitTemperature(
  examples: readonly Pick<ScoredExample, 'probabilities' | 'label'>[],
  usual: number,
): number {
  const scored = examples.map(({ probabilities, label }) => ({
    logits: probabilities.map((p) => Math.log(Math.max(p, LEAST))),
    label,
  }));
  const loss = (lnT: number): number =>
    scored.reduce((sum, { logits, label }) => sum + lossOf(logits, label, Math.exp(lnT)), (lnT - Math.log(usual)) ** 2);
  return Math.exp(goldenSection(loss, -FARTHEST, FARTHEST, STEPS));
}

/** −log of the label's probability. */
function lossOf(logits: Float64Array, label: number, temperature: number): number {
  const highest = logits.reduce((most, each) => Math.max(most, each));
  const sum = logits.reduce((total, each) => total + Math.exp((each - highest) / temperature), 0);
  return Math.log(sum) - ((logits[label] as number) - highest) / temperature;
}
