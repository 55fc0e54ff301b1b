/**
 * Calibration of a model for one catalog: a temperature T that is fitted to labelled examples. Probabilities become
 * p^(1/T), normalised: T > 1 makes them more even, T < 1 more decided. Their order stays as it is, so no answer
 * changes, only how sure it is.
 */

/** One labelled example: what the model said of the choices, and the place of the right one. */
export interface ScoredExample {
  readonly probabilities: Float64Array;
  readonly label: number;
}

/** How good probabilities are on examples that the temperature was not fitted to. */
export interface HeldOut {
  /** Mean of -ln of the right choice's probability. */
  readonly logLoss: number;
  /** Mean probability of the answers that were given. */
  readonly confidence: number;
}

/** What a fit came to. `helps`: on held-out examples the log loss falls by more than one standard error. */
export interface CalibrationFit {
  readonly helps: boolean;
  /** By how much the held-out log loss falls, and the standard error of that. */
  readonly gain: number;
  readonly error: number;
  readonly temperature: number;
  readonly accuracy: number;
  readonly before: HeldOut;
  readonly after: HeldOut;
}

/** The fewest examples that a temperature can be fitted to and checked on. */
export const MIN_EXAMPLES = 30;

const LOWEST = 0.1;
const HIGHEST = 10;
const FOLDS = 5;
/** No probability that callers see is lower. */
const FLOOR = 1e-6;

/**
 * The probabilities at a temperature. At 1 the same object. The first of the highest stays the first of the highest.
 */
export function applyTemperature(probabilities: Float64Array, temperature: number): Float64Array {
  if (temperature === 1) return probabilities;
  const winner = firstHighest(probabilities);
  const highest = probabilities[winner] as number;
  // Relative to the highest, so that a low temperature cannot make all of them 0.
  const powers = probabilities.map((p, i) => {
    const power = (p / highest) ** (1 / temperature);
    // Two that differ in the last places may come out equal; the margin survives the division below.
    return i < winner ? Math.min(power, 1 - 4 * Number.EPSILON) : power;
  });
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/**
 * Fits a temperature to all examples, and checks on five held-out parts whether one fitted to the rest helps. Needs
 * MIN_EXAMPLES.
 */
export function fitCalibration(examples: readonly ScoredExample[]): CalibrationFit {
  if (examples.length < MIN_EXAMPLES) throw new RangeError(`there are fewer than ${MIN_EXAMPLES} examples`);
  const gains: number[] = [];
  const after: { loss: number; confidence: number }[] = [];
  for (let fold = 0; fold < FOLDS; fold++) {
    const temperature = fitTemperature(examples.filter((_, i) => i % FOLDS !== fold));
    for (const example of examples.filter((_, i) => i % FOLDS === fold)) {
      const loss = lossAt(example, temperature);
      gains.push(lossAt(example, 1) - loss);
      after.push({ loss, confidence: Math.max(...applyTemperature(example.probabilities, temperature)) });
    }
  }
  const gain = mean(gains);
  const error = Math.sqrt(mean(gains.map((each) => (each - gain) ** 2)) / (gains.length - 1));
  return {
    helps: gain > error,
    gain,
    error,
    temperature: fitTemperature(examples),
    accuracy: mean(examples.map(({ probabilities, label }) => (firstHighest(probabilities) === label ? 1 : 0))),
    before: {
      logLoss: mean(examples.map((example) => lossAt(example, 1))),
      confidence: mean(examples.map(({ probabilities }) => Math.max(...probabilities))),
    },
    after: {
      logLoss: mean(after.map(({ loss }) => loss)),
      confidence: mean(after.map(({ confidence }) => confidence)),
    },
  };
}

/**
 * The temperature with the least log loss, drawn a little towards 1 so that few examples without an error do not make
 * it extreme.
 */
function fitTemperature(examples: readonly ScoredExample[]): number {
  const objective = (lnT: number): number =>
    mean(examples.map((example) => lossAt(example, Math.exp(lnT)))) + lnT ** 2 / examples.length;
  // Golden-section search: the loss has a single minimum in 1/T.
  const ratio = (Math.sqrt(5) - 1) / 2;
  let [low, high] = [Math.log(LOWEST), Math.log(HIGHEST)];
  for (let step = 0; step < 40; step++) {
    const [left, right] = [high - ratio * (high - low), low + ratio * (high - low)];
    if (objective(left) < objective(right)) high = right;
    else low = left;
  }
  return Number(Math.exp((low + high) / 2).toPrecision(6));
}

function lossAt({ probabilities, label }: ScoredExample, temperature: number): number {
  return -Math.log(Math.max(FLOOR, applyTemperature(probabilities, temperature)[label] as number));
}

function firstHighest(values: Float64Array): number {
  let place = 0;
  for (let i = 1; i < values.length; i++) if ((values[i] as number) > (values[place] as number)) place = i;
  return place;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
