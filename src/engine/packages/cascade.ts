/**
 * The family `cascade`: a package without files that names served models in order. A decision goes to the next step if
 * the one before was less sure than its `sure`. The package's options:
 *
 *     { "steps": [{ "model": "<id>" or "<id>@<revision>",
 *                   "sure": 0…1,                        of all but the last
 *                   "reached": 0…1,                     of all but the first; may be left out
 *                   "weights": [a number a step] },     of all but the first, if they are joined
 *                 … 2 to 4],
 *       "if_away": "answer" | "refuse",                 the latter if it is left out
 *       "join": boolean }                               false if it is left out
 *
 * A step is a model of its own, never a cascade, so there are no circles. By a plain id it is what that name means.
 */
import type { ModelLimits } from '../engine.ts';
import { Checker, isCascade, LEAST_LIMITS, type Manifest, NAME_PATTERN } from './manifest.ts';

/** The most steps of a cascade. */
export const MOST_STEPS = 4;
/** The greatest weight of a step whose answer is joined. */
export const GREATEST_WEIGHT = 100;
/** Of the decisions that come to a step, the share that goes on, where the package does not say. */
const USUAL_SHARE = 0.5;

/** One model of a cascade. */
export interface CascadeStep {
  /** `<id>` or `<id>@<revision>`. */
  readonly model: string;
  /** The confidence from which on it answers; 0 for the last step. */
  readonly sure: number;
  /** The share of decisions that come as far as this step; half of those that come to the one before, if not said. */
  readonly reached: number;
  /** Where steps are joined, the weight of each step so far; undefined for the first step. */
  readonly weights: readonly number[] | undefined;
}

/** The options of a cascade. */
export interface Cascade {
  readonly steps: readonly CascadeStep[];
  /** If a step cannot decide now, what the others say is the answer, or there is none. */
  readonly ifAway: 'answer' | 'refuse';
}

/** Reads the options of a cascade's manifest; undefined of any other. `problems` receives what is wrong with them. */
export function readCascade({ family, options }: Manifest, problems: string[]): Cascade | undefined {
  if (!isCascade(family)) return undefined;
  const fields = new Checker(options, 'options', problems);
  const join = fields.flag('join', false);
  const found = fields.objects('steps', 2);
  if (found.length > MOST_STEPS) fields.problem(`has ${found.length} steps; ${MOST_STEPS} are the most`, 'steps');
  const steps: CascadeStep[] = [];
  for (const each of found) steps.push(stepOf(each, steps, { join, isLast: each === found.at(-1) }));
  const ifAway = fields.oneOf('if_away', ['refuse', 'answer'], 'refuse');
  fields.refuseOthers();
  return { steps, ifAway };
}

function stepOf(
  step: Checker,
  before: readonly CascadeStep[],
  { join, isLast }: { readonly join: boolean; readonly isLast: boolean },
): CascadeStep {
  const model = step.text('model');
  const names = model.split('@');
  if (model !== '' && (names.length > 2 || !names.every((name) => NAME_PATTERN.test(name))))
    step.problem('must be <id> or <id>@<revision>', 'model');
  const last = before.at(-1);
  const isReachedSaid = last !== undefined && step.has('reached');
  const usual = last === undefined ? 1 : USUAL_SHARE * last.reached;
  const found = {
    model,
    sure: isLast ? 0 : step.number('sure', 0, 1),
    reached: isReachedSaid ? step.number('reached', 0, 1) : usual,
    weights: join && last !== undefined ? step.numbers('weights', before.length + 1) : undefined,
  };
  if (found.weights?.some((weight) => weight < 0 || weight > GREATEST_WEIGHT))
    step.problem(`must be from 0 to ${GREATEST_WEIGHT} each`, 'weights');
  step.refuseOthers();
  return found;
}

/** A package that a step may name. */
export interface Candidate extends Pick<Manifest, 'id' | 'revision' | 'family' | 'disabled'> {
  readonly isDefault: boolean;
  /** Whether its manifest or files cannot be used. */
  readonly isBroken: boolean;
}

/** The package of a list that a name means: `<id>@<revision>`, or `<id>` for the one that has the plain name. */
export function packageNamed<T extends Pick<Candidate, 'id' | 'revision' | 'isDefault'>>(
  packages: readonly T[],
  name: string,
): T | undefined {
  return packages.find(({ id, revision, isDefault }) => name === `${id}@${revision}` || (isDefault && name === id));
}

/** The packages of steps in their order, and why those that are left out cannot be steps, each with its place. */
export function stepsAmong<T extends Candidate>(
  names: readonly string[],
  candidates: readonly T[],
): { readonly found: readonly T[]; readonly problems: readonly string[] } {
  const found: T[] = [];
  const problems: string[] = [];
  for (const [place, name] of names.entries()) {
    const named = packageNamed(candidates, name);
    const problem = problemOf(named, found);
    if (named !== undefined && problem === undefined) found.push(named);
    else problems.push(`options.steps[${place}].model: '${name}' ${problem}`);
  }
  return { found, problems };
}

function problemOf(named: Candidate | undefined, before: readonly Candidate[]): string | undefined {
  if (named === undefined) return 'is not served: there is no such package, or UMPIRE_MODELS leaves it out';
  if (isCascade(named.family)) return 'is a cascade, and a step is a model of its own';
  if (named.isBroken) return 'is broken';
  if (named.disabled) return 'is disabled';
  return before.includes(named) ? 'is a step before this one, too' : undefined;
}

/** Limits that fit all steps: of each the narrowest. Tokens are those that each step's model counts. */
export function narrowest(limits: readonly ModelLimits[]): ModelLimits {
  if (limits.length === 0) return LEAST_LIMITS;
  const least = (limit: keyof ModelLimits): number => Math.min(...limits.map((each) => each[limit]));
  return { inputTokens: least('inputTokens'), candidateTokens: least('candidateTokens'), choices: least('choices') };
}

/** The languages that all steps were measured in; undefined if one of them does not say, or there is none. */
export function commonLanguages(all: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  const [first = [], ...others] = all;
  const common = first.filter((language) => others.every((each) => each?.includes(language)));
  return common.length === 0 ? undefined : common;
}
