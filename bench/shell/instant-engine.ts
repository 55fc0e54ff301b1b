/** An engine that answers at once, so that what is left of a request is the shell around it. */
import type { Engine } from '../../src/engine/engine.ts';

/** Knows one model, `instant@r1`, and finds every choice equally likely. */
export function createInstantEngine(): Engine {
  const limits = { inputTokens: 512, candidateTokens: 128, choices: 300 };
  const models = [
    { id: 'instant', revision: 'r1', isDefault: true, ownedBy: 'umpire', status: 'ready', limits } as const,
  ];
  return {
    models: () => models,
    score: async ({ choices }, { released }) => {
      released?.();
      return {
        kind: 'scored',
        probabilities: new Float64Array(choices.length).fill(1 / choices.length),
        inputTokens: 24,
        timings: { queue: 0, tokenize: 0, infer: 0 },
      };
    },
    prepare: async () => ({ kind: 'prepared' }),
    ready: () => true,
    stats: () => ({
      queue: { jobs: 0, cost: 0 },
      engines: [],
      busy: 0,
      restarts: 0,
      choices: { encoded: 0, cached: 0 },
    }),
    reload() {},
    close: async () => {},
  };
}
