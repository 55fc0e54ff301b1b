/**
 * What a model's work costs on this machine. A family measures it when a package is loaded, in milliseconds of CPU time
 * on one core or of a server's time. The time of a job is estimated from it before anything is tokenised.
 */

/**
 * Measured points [tokens, milliseconds], in ascending order of tokens; between and beyond them the cost follows a
 * straight line.
 */
export type CostCurve = readonly (readonly [tokens: number, milliseconds: number])[];

/**
 * The cost of a decision: `premise` once, and `choice` for every choice whose work is not cached. A family may measure
 * more and add fields, which its own arithmetic reads: see `job-cost.ts`. A profile must be
 * structured-clonable, since it is sent between processes.
 */
export interface CostProfile {
  /** Over the tokens of instruction and input together. */
  readonly premise: CostCurve;
  /** Over the tokens of one choice, or of the premise and one choice if `choiceReadsPremise`. */
  readonly choice: CostCurve;
  readonly choiceReadsPremise: boolean;
  /** Whether a choice that was encoded before costs nothing. */
  readonly choicesCached: boolean;
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

/** The arithmetic of most families: a premise, and the choices that are not cached. */
export function plainCost(profile: CostProfile, { premiseTokens, uncached, choiceTokens }: JobSize): number {
  const tokens = choiceTokens + (profile.choiceReadsPremise ? premiseTokens : 0);
  return costAt(profile.premise, premiseTokens) + uncached * costAt(profile.choice, tokens);
}
