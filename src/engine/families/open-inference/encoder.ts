/** Encodes texts by a server whose model makes one vector of each row. */
import type { RemoteEncoder } from '../remote/vector-scorer.ts';
import type { InferRows } from './infer-rows.ts';
import type { Returns } from './options.ts';
import type { RowMaker } from './row-maker.ts';
import type { Row } from './tensors.ts';

/** An encoder that makes the rows by the package's rules. */
export function createRowEncoder(
  { choice, input, joint, jointWeight }: Extract<Returns, { kind: 'embedding' }>,
  rowMaker: RowMaker,
  infer: InferRows,
): RemoteEncoder {
  const rules = [
    { rule: input, weight: 1 - jointWeight },
    { rule: joint ?? input, weight: jointWeight },
  ].filter(({ weight }) => weight > 0);
  return {
    choices: async (choices, call) =>
      await infer(await rowMaker.ofChoices(choice, undefined, choices, call.signal), call),
    async premise(premise, call) {
      const rows: Row[] = [];
      for (const { rule } of rules) rows.push(await rowMaker.ofPremise(rule, premise, call.signal));
      return await infer(rows, call);
    },
  };
}
