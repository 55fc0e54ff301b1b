/**
 * What learning costs: the CPU time that learned weights add to a decision among 300 choices, and the time of learning
 * from 1,000 examples for 77 choices, compared with the time that an engine takes to decide these.
 */
import { Learned } from '../../src/domain/learned.ts';
import { learn, learnedOf } from '../../src/learning/learn.ts';
import { regressionData, type ScoredExample } from '../../src/learning/regression.ts';
import { basisOf } from '../../src/stores/catalog-additions.ts';

/** Choices of the decision: the most that a decision may have. */
const MANY = 300;
/** Decisions that are timed. */
const DECISIONS = 3000;
/** Numbers of a text's vector. */
const WIDTH = 384;
/** Figures of a learned state that was not measured. */
const NONE = { log_loss: 0, accuracy: 0, ece: 0 };
/** Bounds: milliseconds that learned weights may add to a decision, and the ratio of learning to deciding. */
export const MOST_COST = { decision: 0.2, learning: 3 };

/**
 * What was measured: CPU milliseconds that learning adds to a decision, and how many times as long as deciding it
 * takes.
 */
export interface LearningCost {
  readonly decision: number;
  readonly learning: number;
}

/** Measures both costs. `rows`: scored examples; `decided`: milliseconds that deciding one of them takes. */
export function learningCost(
  rows: readonly ScoredExample[],
  choices: readonly string[],
  decided: number,
): LearningCost {
  const facts = { model: 'cost@r1', basis: basisOf(choices, undefined) };
  const began = performance.now();
  learn(rows, choices, facts);
  const learning = (performance.now() - began) / (rows.length * decided);
  return { decision: decisionCost(), learning };
}

function decisionCost(): number {
  const choices = Array.from({ length: MANY }, (_, i) => `choice ${i}`).toSorted();
  // The cost does not depend on the values of the numbers.
  const numbers = (count: number, seed: number): Float32Array =>
    Float32Array.from({ length: count }, (_, j) => Math.sin(seed + j) / 14);
  const rows = Array.from({ length: 100 }, (_, i): ScoredExample => {
    return { probabilities: new Float64Array(MANY).fill(1 / MANY), vector: numbers(WIDTH, i), label: i };
  });
  const data = regressionData(rows);
  const parameters = Float64Array.from(numbers(1 + MANY + MANY * WIDTH, 1));
  const learned = learnedOf(data, parameters, {
    model: 'cost@r1',
    basis: basisOf(choices, undefined),
    rung: 'weights',
  });
  const state = new Learned({ ...learned, learned_at: '', examples: [], before: NONE, after: NONE });
  const run = (times: number): void => {
    for (let i = 0; i < times; i++) {
      const { probabilities, vector } = rows[i % rows.length] as ScoredExample;
      state.decide(probabilities, vector);
    }
  };
  run(DECISIONS / 10);
  const { user, system } = process.cpuUsage();
  run(DECISIONS);
  const spent = process.cpuUsage({ user, system });
  return (spent.user + spent.system) / 1000 / DECISIONS;
}
