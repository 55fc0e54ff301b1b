/**
 * An engine that answers at once, so that only the shell around it is measured. A file of its own: tests of engines try
 * it, too, and its importer is a program.
 */
import type { Engine } from '../../src/engine/engine.ts';
import { createFunctionEngine } from '../../src/mock/function-engine.ts';

/** An engine with one model, `instant@r1`, that gives every choice the same probability. */
export function createInstantEngine(): Engine {
  const limits = { inputTokens: 512, candidateTokens: 128, choices: 300 };
  const models = [
    { id: 'instant', revision: 'r1', isDefault: true, ownedBy: 'umpire', status: 'ready', limits } as const,
  ];
  return createFunctionEngine({
    models: () => models,
    score: ({ choices }) => ({
      kind: 'scored',
      probabilities: new Float64Array(choices.length).fill(1 / choices.length),
      inputTokens: 24,
      timings: { queue: 0, tokenize: 0, infer: 0 },
    }),
  });
}
