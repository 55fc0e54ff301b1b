/**
 * One draw of examples: the accuracy of what is learned from them, and of a plain logistic regression on the same
 * vectors.
 */
import { Learned } from '../../src/domain/learned.ts';
import { judge, learn, learnedOf, MIN_EXAMPLES } from '../../src/learning/learn.ts';
import { type AnswerQuality, qualityOf } from '../../src/learning/quality.ts';
import { fitParameters, regressionData, type ScoredExample } from '../../src/learning/regression.ts';
import { basisOf } from '../../src/stores/catalog-additions.ts';
import { random } from '../../test/support/random.ts';

/** The strength of the plain regression's penalty, half the squared weights: 1 is the usual default. */
const PLAIN_PULL = 1;
/** The strength for its biases: nearly none, but with 0 a choice without examples would go to minus infinity. */
const PLAIN_BIAS_PULL = 0.01;

/**
 * Draws k examples of each choice by a seed, learns from them and decides all others. The record is undefined if
 * nothing was learned, as with too few examples.
 */
export function measureDraw(
  rows: readonly ScoredExample[],
  choices: readonly string[],
  model: string,
  k: number,
  seed: number,
) {
  const { examples, others } = draw(rows, choices.length, k, seed);
  const quality = (state: Learned | undefined): AnswerQuality =>
    qualityOf(
      others.map(({ probabilities, vector, label }) => {
        const decided = state?.decide(probabilities, vector) ?? probabilities;
        return judge(choices, label, (choice) => decided[choice] as number);
      }),
    );
  const facts = { model, basis: basisOf(choices, undefined) };
  const record = examples.length < MIN_EXAMPLES ? undefined : learn(examples, choices, facts).record;
  const zeroShot = quality(undefined);
  const after = record === undefined ? zeroShot : quality(new Learned(record));
  return {
    record,
    figures: {
      zeroShot: zeroShot.accuracy.share,
      learned: after.accuracy.share,
      regression: quality(plainRegression(examples, facts)).accuracy.share,
      ece: after.ece,
      rung: record?.rung ?? 'zero-shot',
    },
  };
}

/** A logistic regression on the vectors alone, without the model's probabilities of the choices. */
function plainRegression(
  examples: readonly ScoredExample[],
  facts: { readonly model: string; readonly basis: string },
): Learned {
  const data = regressionData(examples);
  const counts = new Int32Array(examples.length).fill(1);
  const parameters = fitParameters(data, counts, { scale: 0, weights: PLAIN_PULL, bias: PLAIN_BIAS_PULL });
  const none = { log_loss: 0, accuracy: 0, ece: 0 };
  return new Learned({
    ...learnedOf(data, parameters, { ...facts, rung: 'weights' }),
    examples: [],
    before: none,
    after: none,
    learned_at: '',
  });
}

/** k random rows of each choice, or all but one where there are not more, as examples; and all other rows. */
function draw(rows: readonly ScoredExample[], choices: number, k: number, seed: number) {
  const next = random(1000 * seed + k);
  const order = [...rows];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [order[i], order[j]] = [order[j] as ScoredExample, order[i] as ScoredExample];
  }
  const counts = Array.from({ length: choices }, (_, choice) => rows.filter(({ label }) => label === choice).length);
  const taken = new Array<number>(choices).fill(0);
  const examples: ScoredExample[] = [];
  const others: ScoredExample[] = [];
  for (const row of order) {
    if ((taken[row.label] as number) < Math.min(k, (counts[row.label] as number) - 1)) {
      taken[row.label] = (taken[row.label] as number) + 1;
      examples.push(row);
    } else others.push(row);
  }
  return { examples, others };
}
