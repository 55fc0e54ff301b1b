/**
 * The dialect `open-inference`: a server that speaks the Open Inference Protocol v2 over gRPC makes the numbers, of
 * rows that are made here. The options stand in options.ts.
 */
import type { Family, FamilyParts } from '../family.ts';
import { createRemoteFamily } from '../remote/remote-family.ts';
import { createVectorScorer } from '../remote/vector-scorer.ts';
import { openConnection } from './connection.ts';
import { createRowEncoder } from './encoder.ts';
import { createInferRows } from './infer-rows.ts';
import { createLogitScorer } from './logit-scorer.ts';
import { readOpenInferenceOptions } from './options.ts';
import { createRowMaker } from './row-maker.ts';

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
