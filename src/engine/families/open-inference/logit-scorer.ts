/** For a server that reads a premise and a choice together and returns a logit for the pair: a cross-encoder. */
import type { Scorer } from '../remote/scorer.ts';
import type { InferRows } from './infer-rows.ts';
import type { Returns } from './options.ts';
import type { RowMaker } from './row-maker.ts';

/** One row a choice. */
export function createLogitScorer(
  { pair, column, minus }: Extract<Returns, { kind: 'logit' }>,
  rowMaker: RowMaker,
  infer: InferRows,
): Scorer {
  return {
    choiceReadsPremise: true,
    async logits(premise, choices, call) {
      const rows = await infer(await rowMaker.ofChoices(pair, premise, choices, call.signal), call);
      const at = (row: Float64Array, place: number): number => row[place] as number;
      const logits = Float64Array.from(rows, (row) => at(row, column) - (minus === undefined ? 0 : at(row, minus)));
      return { logits, read: choices.length };
    },
    async prepare() {},
  };
}
