/**
 * What a model's work costs on this machine. An engine measures it when it loads a package, in milliseconds of CPU time on one core; the
 * pool estimates from it what a job will take before anything is tokenised.
 */
import type { ModelLimits } from './engine.ts';
import type { Manifest } from './packages/manifest.ts';

/** Measured points [tokens, milliseconds] by rising tokens; between and beyond them the cost is a straight line. */
export type CostCurve = readonly (readonly [tokens: number, milliseconds: number])[];

/** The cost of a decision: `premise` once, and `choice` for every choice whose work is not cached. */
export interface CostProfile {
  /** Over the tokens of instruction and input together. */
  readonly premise: CostCurve;
  /** Over the tokens of one choice, or of the premise and one choice if `choiceReadsPremise`. */
  readonly choice: CostCurve;
  readonly choiceReadsPremise: boolean;
  /** Whether a choice that was encoded before costs nothing. */
  readonly choicesCached: boolean;
  /** Runs that read the premise and the best choices together, if there are such. */
  readonly packed?: PackedRuns;
}

/** Runs over a window of the premise and as many choices as fit. */
export interface PackedRuns {
  /** One run over its tokens. */
  readonly run: CostCurve;
  /** The most tokens of a run. */
  readonly tokens: number;
  /** The most choices that are read. */
  readonly best: number;
  /** The most tokens of a premise that is read whole. */
  readonly window: number;
  /**
   * A longer one is read in windows of so many tokens: up to `windows`, or as many as fit into `fullPacks` full runs, and one at least; and its
   * first `window` tokens once, if one run holds them and the choices.
   */
  readonly segment: number;
  readonly windows: number;
  readonly fullPacks: number;
  /** The most tokens of an instruction that is read once more without a text, if it and its choices are new and all are read; 0: none is. */
  readonly silent: number;
}

/** How large a job is. Tokens may be estimates. */
export interface JobSize {
  readonly premiseTokens: number;
  /** Choices that are offered. */
  readonly choices: number;
  /** How many of them must be encoded. */
  readonly uncached: number;
  /** Tokens of one choice. */
  readonly choiceTokens: number;
}

/** Milliseconds at `tokens`. An empty curve costs nothing. */
export function costAt(curve: CostCurve, tokens: number): number {
  const [first] = curve;
  if (first === undefined) return 0;
  let lower = first;
  let upper = curve[1] ?? first;
  for (let i = 1; i < curve.length - 1 && tokens > upper[0]; i++) {
    lower = upper;
    upper = curve[i + 1] ?? upper;
  }
  if (upper[0] === lower[0]) return lower[1];
  const slope = (upper[1] - lower[1]) / (upper[0] - lower[0]);
  return Math.max(0, lower[1] + slope * (tokens - lower[0]));
}

/** Milliseconds that a job of this size takes on one core. */
export function jobCost(profile: CostProfile, size: JobSize): number {
  const tokens = size.choiceTokens + (profile.choiceReadsPremise ? size.premiseTokens : 0);
  const packed = profile.packed === undefined ? 0 : packedCost(profile.packed, size);
  return costAt(profile.premise, size.premiseTokens) + size.uncached * costAt(profile.choice, tokens) + packed;
}

function packedCost(packed: PackedRuns, size: JobSize): number {
  const { run, tokens, segment, windows, fullPacks } = packed;
  const read = Math.min(size.choices, packed.best);
  const block = size.choiceTokens + 1;
  const over = (premise: number): number => {
    const fitting = Math.min(read, Math.max(1, Math.floor((tokens - premise) / block)));
    return Math.ceil(read / fitting) * costAt(run, premise + fitting * block);
  };
  const whole = size.premiseTokens + 3 <= packed.window;
  const premise = whole ? size.premiseTokens + 3 : segment;
  const room = Math.max(1, Math.floor((fullPacks * tokens) / (premise + read * block)));
  const asksSilently = packed.silent > 0 && size.uncached > 0 && size.choices <= packed.best;
  const silent = asksSilently ? over(Math.min(premise, packed.silent + 3)) : 0;
  const first = !whole && packed.window + read * block <= tokens ? over(packed.window) : 0;
  return (whole ? 1 : Math.min(windows, room)) * over(premise) + first + silent;
}

/** Milliseconds of the largest request that the limits allow, with nothing cached. */
export function worstCost(profile: CostProfile, limits: ModelLimits): number {
  return jobCost(profile, {
    premiseTokens: limits.inputTokens,
    choices: limits.choices,
    uncached: limits.choices,
    choiceTokens: limits.candidateTokens,
  });
}

/** Why a model cannot be served with its limits, or undefined: its largest legal request must be done within `deadline` milliseconds. */
export function limitsProblem(
  profile: CostProfile,
  { limits, family }: Pick<Manifest, 'limits' | 'family'>,
  deadline: number,
): string | undefined {
  const worst = worstCost(profile, limits);
  if (worst <= deadline) return undefined;
  const where =
    family === 'open-inference' ? 'by its inference server, one batch at a time' : 'on one core of this machine';
  return (
    `limits: the largest legal request takes ${Math.round(worst)} ms ${where}, ` +
    `more than the default deadline of ${deadline} ms`
  );
}

/** Measures a curve: runs `work` at each size after one unmeasured run and keeps the least CPU time of two. */
export async function measureCurve(
  sizes: readonly number[],
  work: (tokens: number) => Promise<unknown>,
): Promise<CostCurve> {
  const points: [number, number][] = [];
  const distinct = [...new Set(sizes)].sort((a, b) => a - b);
  await work(distinct[0] ?? 1);
  for (const tokens of distinct) {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 2; round++) {
      // CPU time and not the clock: a machine that is busy while a model loads must not make the model look slow.
      const before = process.cpuUsage();
      await work(tokens);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    points.push([tokens, least]);
  }
  return points;
}
