/**
 * The dialect `open-inference`: a server that speaks the Open Inference Protocol v2 over gRPC makes the numbers, from
 * rows that are made here. The options are in options.ts.
 */
import type { Family, FamilyParts } from '../family.ts';
import { createRemoteFamily } from '../remote/remote-family.ts';
import type { Scorer } from '../remote/scorer.ts';
import { createVectorScorer, type RemoteEncoder } from '../remote/vector-scorer.ts';
import { openConnection } from './connection.ts';
import { createInferRows, createRowMaker, type InferRows, type RowMaker } from './infer-rows.ts';
import { type Returns, readOpenInferenceOptions } from './options.ts';
import type { Row } from './tensors.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadOpenInference(parts: FamilyParts): Promise<Family> {
  const options = readOpenInferenceOptions(parts.options);
  const { returns } = options;
  return await createRemoteFamily(parts, options, {
    open: () => openConnection(options, parts.folder),
    keepsChoices: returns.kind === 'embedding',
    scorer({ server, tokenizer, keeps }) {
      const rowMaker = createRowMaker(tokenizer);
      const infer = createInferRows(server, options);
      return returns.kind === 'logit'
        ? createLogitScorer(returns, rowMaker, infer)
        : createVectorScorer(createRowEncoder(returns, rowMaker, infer), returns.jointWeight, keeps);
    },
  });
}

/** For a server that reads a premise and a choice together, one row a choice, and returns a logit for the pair. */
function createLogitScorer(
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

// Encodes texts by a server whose model makes one vector of each row.

/** An encoder that makes the rows by the package's rules. */
function createRowEncoder(
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
