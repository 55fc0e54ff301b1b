/** Learning: from scored examples to what a catalog learns, which is nothing where nothing helps. */
import { digestOf, type LearnedFigures, type LearnedRecord } from '../stores/catalog-additions.ts';
import { climb, type RungResult } from './ladder.ts';
import { type AnswerQuality, type JudgedAnswer, qualityOf } from './quality.ts';
import { type Parameters, type RegressionData, regressionData, type ScoredExample } from './regression.ts';

/** With fewer examples, those held out are too few to check anything on. */
export const MIN_EXAMPLES = 8;

/** The largest absolute weight in a row of bytes; each row has its own scale. */
const LARGEST = 127;

/** The result of learning. All figures are of held-out examples that judge, those of `rungs` also if others veto. */
export interface Lesson {
  /** Undefined where the model as it is cannot be beaten by more than chance. */
  readonly record: LearnedRecord | undefined;
  readonly rungs: readonly RungResult[];
  readonly before: AnswerQuality;
  readonly after: AnswerQuality;
  /** The answers to all examples in their order, each held out. */
  readonly answers: readonly { readonly before: JudgedAnswer; readonly after: JudgedAnswer }[];
}

/**
 * Learns from examples. The same examples in the same order give the same record, but for its date. `choices` are in
 * code-unit order.
 */
export function learn(
  examples: readonly ScoredExample[],
  choices: readonly string[],
  facts: Pick<LearnedRecord, 'model' | 'basis'>,
  now = new Date(),
): Lesson {
  if (examples.length < MIN_EXAMPLES) throw new RangeError(`there are fewer than ${MIN_EXAMPLES} examples`);
  const data = regressionData(examples);
  const { rung, parameters, rungs, before, after } = climb(data);
  const answers = examples.map(({ label }, i) => {
    const by = (probabilities: Float64Array): JudgedAnswer =>
      judge(choices, label, (k) => probabilities[k * examples.length + i] as number);
    return { before: by(before), after: by(after) };
  });
  const judging = Array.from(data.vetoes ?? data.judges, (i) => answers[i] as (typeof answers)[number]);
  const qualityBefore = qualityOf(judging.map((each) => each.before));
  const qualityAfter = qualityOf(judging.map((each) => each.after));
  const record: LearnedRecord | undefined =
    rung === 'zero-shot'
      ? undefined
      : {
          ...learnedOf(data, parameters, { ...facts, rung }),
          examples: choices.map((_, k) => examples.filter(({ label }) => label === k).length),
          before: figures(qualityBefore),
          after: figures(qualityAfter),
          learned_at: now.toISOString(),
        };
  return { record, rungs, before: qualityBefore, after: qualityAfter, answers };
}

/** The part of a learned state that decides, made from fitted parameters. Weights become bytes, row by row. */
export function learnedOf(
  { choices, vectors }: RegressionData,
  parameters: Parameters,
  facts: Pick<LearnedRecord, 'model' | 'basis' | 'rung'>,
): Omit<LearnedRecord, 'learned_at' | 'examples' | 'before' | 'after'> {
  const bias = [...parameters.subarray(1, 1 + choices)];
  const width = parameters.length > 1 + choices ? (vectors?.width ?? 0) : 0;
  const state = { ...facts, scale: parameters[0] as number, bias };
  if (width === 0 || vectors === undefined) return { ...state, digest: digestOf(state) };
  const rows = new Int8Array(choices * width);
  const row_scales: number[] = [];
  for (let k = 0; k < choices; k++) {
    const row = parameters.subarray(1 + choices + k * width, 1 + choices + (k + 1) * width);
    const scale = Math.max(1e-12, ...row.map(Math.abs)) / LARGEST;
    row_scales.push(scale);
    for (const [j, value] of row.entries()) {
      rows[k * width + j] = Math.round(value / scale);
      // The weights were fitted to vectors less their mean.
      bias[k] = (bias[k] as number) - scale * (rows[k * width + j] as number) * (vectors.mean[j] as number);
    }
  }
  const weights = { width, row_scales, rows: Buffer.from(rows.buffer).toString('base64') };
  return { ...state, weights, digest: digestOf({ ...state, weights }) };
}

/** The answer that the probabilities give: the choice with the highest, and of equal ones the first. */
export function judge(
  choices: readonly string[],
  label: number,
  probability: (choice: number) => number,
): JudgedAnswer {
  let best = 0;
  for (let k = 1; k < choices.length; k++) if (probability(k) > probability(best)) best = k;
  return {
    label: choices[label] as string,
    choice: choices[best] as string,
    confidence: probability(best),
    ofLabel: probability(label),
  };
}

function figures({ logLoss, accuracy, ece }: AnswerQuality): LearnedFigures {
  const rounded = (value: number): number => Number(value.toFixed(6));
  return { log_loss: rounded(logLoss), accuracy: rounded(accuracy.share), ece: rounded(ece) };
}
