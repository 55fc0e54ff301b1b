/**
 * What the steps of a cascade say, and the weights with which it is joined: those of the logarithmic opinion pool that
 * makes the right choices of examples most probable.
 */
import { GREATEST_WEIGHT } from '../engine/packages/cascade.ts';
import { logOf, weightedProduct } from '../engine/tempered.ts';
import { minimise } from './lbfgs.ts';
import { judge } from './learn.ts';
import type { JudgedAnswer } from './quality.ts';

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
export type Weights = readonly (readonly number[] | undefined)[];

/** Significant digits of what is fitted. */
const DIGITS = 4;

/** What the cascade would answer at a step. */
export function answerOf(example: CascadeExample, place: number, weights: Weights[number]): JudgedAnswer {
  const { choices, label } = example;
  const all = saidUpTo(example, place);
  const found = weights === undefined ? all[place] : weightedProduct(all, weights);
  return judge(choices, label, (k) => found?.[k] ?? 0);
}

/** By step, the weights that make the right choices most probable; none of the first. */
export function weightsOf(examples: readonly CascadeExample[]): Weights {
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
export function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}
