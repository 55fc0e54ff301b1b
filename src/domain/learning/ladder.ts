/**
 * The ladder, from the least to the most: the model as it is, a temperature, a bias for each choice, weights on the
 * vector of the text. A rung is taken only if it beats the one taken before on examples that were held out, by more
 * than the standard error of the difference.
 */
import { goldenSection } from './golden-section.ts';
import {
  COMPARING,
  fitParameters,
  logitsOf,
  type Parameters,
  type Pulls,
  type RegressionData,
  toProbabilities,
} from './regression.ts';

/** A rung of the ladder, from the model as it is to weights on the text's vector. */
export type Rung = 'zero-shot' | 'temperature' | 'bias' | 'weights';

/** What a rung came to on held-out examples. */
export interface RungResult {
  readonly rung: Rung;
  /** Mean of -ln of the right choice's probability. */
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
  readonly probabilities: Float64Array;
  readonly losses: Float64Array;
  readonly logLoss: number;
  /** The parameters of each fold, to begin a candidate like it at. */
  readonly parameters: readonly Parameters[];
}

const FOLDS = 5;
/** As many examples are few: a gain must be twice its standard error then, and all of the model stays. */
const FEW = 16;
/** The least pull of weights for one example; it falls with the square of their number. */
const LEAST_PULL = 64;
const TEMPERATURE_STEPS = 12;
const BIAS_PULLS = [10, 1];
/** The pulls on weights that are tried, from strong to weak. */
const WEIGHT_PULLS = [1, 0.3, 0.1, 0.03, 0.01];
/** How much of the model stays beside weights. */
const WEIGHT_SCALES = [1, 0.7, 0.4, 0.2, 0.1];
const FIRST_SCALE = 0.4;
/** The pull on the bias beside weights. */
const BIAS_BESIDE_WEIGHTS = 1;

/** Climbs as far as it pays. The order of examples does not matter as long as it is the same. */
export function climb(data: RegressionData): Learning {
  const folds = foldsOf(data);
  const biased = !isStratified(data);
  const before = heldOut(data, folds, undefined);
  let current = before;
  let rung: Rung = 'zero-shot';
  const rungs: RungResult[] = [result(data, 'zero-shot', before, before, true)];
  const attempt = (name: Rung, found: HeldOut): void => {
    const { gain, error } = gainOf(current, found);
    const better = gain > (1 + (FEW / data.examples) ** 3) * error;
    // A better distribution must not cost right answers.
    const taken = better && accuracyOf(data, found.probabilities) >= accuracyOf(data, before.probabilities);
    rungs.push(result(data, name, current, found, taken));
    if (taken) [current, rung] = [found, name];
  };
  attempt('temperature', heldOut(data, folds, { scale: 1 }));
  if (biased)
    attempt(
      'bias',
      bestOf(
        data,
        folds,
        BIAS_PULLS.map((bias) => ({ scale: 1, bias })),
      ),
    );
  if (data.vectors !== undefined) attempt('weights', bestWeights(data, folds, biased));
  return { rung, parameters: fitted(data, current), rungs, before: before.probabilities, after: current.probabilities };
}

/** The pull is chosen first, and then how much of the model stays. */
function bestWeights(data: RegressionData, folds: Int32Array, biased: boolean): HeldOut {
  const bias = biased ? { bias: BIAS_BESIDE_WEIGHTS } : {};
  const least = LEAST_PULL / data.examples ** 2;
  const leastScale = Math.min(1, FEW / data.examples);
  const firstScale = Math.max(FIRST_SCALE, leastScale);
  const pulls = WEIGHT_PULLS.filter((pull, place) => place === 0 || pull >= least);
  const first = bestOf(
    data,
    folds,
    pulls.map((weights) => ({ scale: firstScale, weights, ...bias })),
  );
  const { weights = 1 } = first.pulls ?? {};
  const scales = (keep: (scale: number) => boolean) =>
    WEIGHT_SCALES.filter((scale) => keep(scale) && scale >= leastScale).map((scale) => ({ scale, weights, ...bias }));
  const more = bestOf(data, folds, scales((scale) => scale > firstScale).reverse(), first);
  return more === first
    ? bestOf(
        data,
        folds,
        scales((scale) => scale < firstScale),
        first,
      )
    : more;
}

/** The parameters for all examples, at the temperature that held-out ones asked for. */
function fitted(data: RegressionData, { pulls, temperature }: HeldOut): Parameters {
  const { choices, examples } = data;
  if (pulls === undefined) return identity(choices);
  const parameters = hasFit(pulls) ? fitParameters(data, new Int32Array(examples).fill(1), pulls) : identity(choices);
  return parameters.map((value) => value / temperature);
}

function identity(choices: number): Parameters {
  const parameters = new Float64Array(1 + choices);
  parameters[0] = 1;
  return parameters;
}

function hasFit({ bias, weights }: Pulls): boolean {
  return bias !== undefined || weights !== undefined;
}

/**
 * Whether the examples were picked to be as many of each choice: how often a choice comes then says nothing of
 * how often it will.
 */
export function isStratified({ labels, choices }: RegressionData): boolean {
  const counts = new Array<number>(choices).fill(0);
  for (const label of labels) counts[label] = (counts[label] as number) + 1;
  const some = counts.filter((count) => count > 0);
  const most = Math.max(...some);
  return 2 * some.filter((count) => count === most).length > some.length;
}

/** The fold of each example: those of one choice are spread over all. */
function foldsOf({ labels, examples }: RegressionData): Int32Array {
  const folds = new Int32Array(examples);
  const order = Array.from(labels, (label, i) => ({ label, i })).sort((a, b) => a.label - b.label || a.i - b.i);
  for (const [place, { i }] of order.entries()) folds[i] = place % FOLDS;
  return folds;
}

/** The best candidate by held-out loss, `first` among them; it stops where they become worse. */
function bestOf(data: RegressionData, folds: Int32Array, candidates: readonly Pulls[], first?: HeldOut): HeldOut {
  let best = first;
  let near = first;
  for (const pulls of candidates) {
    const found: HeldOut = heldOut(data, folds, pulls, near);
    near = found;
    if (best !== undefined && found.logLoss >= best.logLoss) break;
    best = found;
  }
  return best as HeldOut;
}

/** Decides each fold by what is fitted to the others. `pulls` undefined: the model as it is. `near`: where to begin. */
function heldOut(data: RegressionData, folds: Int32Array, pulls: Pulls | undefined, near?: HeldOut): HeldOut {
  const { examples, choices } = data;
  const logits = new Float64Array(choices * examples);
  const parameters: Parameters[] = [];
  for (let fold = 0; fold < FOLDS; fold++) {
    const counts = folds.map((of) => (of === fold ? 0 : 1));
    const found =
      pulls !== undefined && hasFit(pulls)
        ? fitParameters(data, counts, pulls, COMPARING, near?.parameters[fold])
        : identity(choices);
    parameters.push(found);
    copyWhere(data, folds, fold, logitsOf(data, found), logits);
  }
  const probabilities = new Float64Array(choices * examples);
  if (pulls !== undefined) {
    for (let fold = 0; fold < FOLDS; fold++) {
      const temperature = temperatureOf(data, logits, (i) => folds[i] !== fold);
      copyWhere(
        data,
        folds,
        fold,
        logits.map((value) => value / temperature),
        probabilities,
      );
    }
  } else {
    probabilities.set(logits);
  }
  const losses = toProbabilities(data, probabilities);
  const temperature = pulls === undefined ? 1 : temperatureOf(data, logits, () => true);
  return { pulls, temperature, probabilities, losses, logLoss: mean(losses), parameters };
}

function copyWhere(data: RegressionData, folds: Int32Array, fold: number, from: Float64Array, to: Float64Array): void {
  const { examples } = data;
  for (let place = 0; place < to.length; place++)
    if (folds[place % examples] === fold) to[place] = from[place] as number;
}

/** The temperature at which logits lose least on the examples that count, drawn a little towards 1. */
function temperatureOf(data: RegressionData, logits: Float64Array, counts: (example: number) => boolean): number {
  const loss = (lnT: number): number => {
    const losses = toProbabilities(
      data,
      logits.map((value) => value / Math.exp(lnT)),
    );
    return losses.reduce((sum, each, i) => (counts(i) ? sum + each : sum), lnT ** 2);
  };
  return Math.exp(goldenSection(loss, -2, 2, TEMPERATURE_STEPS));
}

function gainOf(from: HeldOut, to: HeldOut): { readonly gain: number; readonly error: number } {
  const gains = from.losses.map((loss, i) => loss - (to.losses[i] as number));
  const gain = mean(gains);
  const variance = gains.reduce((sum, each) => sum + (each - gain) ** 2, 0) / Math.max(1, gains.length - 1);
  return { gain, error: Math.sqrt(variance / gains.length) };
}

function result(data: RegressionData, rung: Rung, from: HeldOut, to: HeldOut, taken: boolean): RungResult {
  return { rung, logLoss: to.logLoss, accuracy: accuracyOf(data, to.probabilities), ...gainOf(from, to), taken };
}

/** Share of examples whose label has the highest probability. */
function accuracyOf({ examples, choices, labels }: RegressionData, probabilities: Float64Array): number {
  let right = 0;
  for (let i = 0; i < examples; i++) {
    const own = probabilities[(labels[i] as number) * examples + i] as number;
    let higher = false;
    for (let k = 0; k < choices && !higher; k++)
      higher = k !== labels[i] && (probabilities[k * examples + i] as number) >= own;
    if (!higher) right++;
  }
  return right / examples;
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
