/** The mock's engine: any number of models that all decide by the overlap of words, within limits of their own. */
import type { Engine, ModelLimits, ModelRevision, ModelStatus } from '../engine/engine.ts';
import { byCodeUnits } from '../engine/packages/manifest.ts';
import { createFunctionEngine } from './function-engine.ts';
import { countTokens, overlapProbabilities } from './word-overlap.ts';

/** A model that the mock lists. */
export interface MockModel {
  readonly id: string;
  readonly revision: string;
  readonly status: ModelStatus;
  /** The model's own limits; where they are absent, those of all models apply. */
  readonly limits?: ModelLimits;
}

/** An engine over models; the first revision that is listed of an id is its default. */
export function createMockEngine(models: readonly MockModel[], limits: ModelLimits): Engine {
  const revisions = models
    .map(
      (model, place): ModelRevision => ({
        ...model,
        isDefault: models.findIndex(({ id }) => id === model.id) === place,
        ownedBy: 'mock',
        limits: model.limits ?? limits,
      }),
    )
    .sort((a, b) => byCodeUnits(a.id, b.id) || byCodeUnits(a.revision, b.revision));
  const limitsOf = (id: string, revision: string): ModelLimits =>
    models.find((model) => model.id === id && model.revision === revision)?.limits ?? limits;
  const tooLong = (choices: readonly string[], limits: ModelLimits) => {
    for (const choice of choices) {
      const tokens = countTokens(choice);
      if (tokens > limits.candidateTokens) {
        return { kind: 'choice_too_long', choice, tokens, limit: limits.candidateTokens } as const;
      }
    }
    return undefined;
  };
  return createFunctionEngine({
    models: () => revisions,
    score({ model, revision, instruction, input, choices }) {
      const limits = limitsOf(model, revision);
      const tokens = countTokens(instruction) + countTokens(input);
      if (tokens > limits.inputTokens) {
        return { kind: 'input_too_long', tokens, limit: limits.inputTokens, atLeast: false };
      }
      return (
        tooLong(choices, limits) ?? {
          kind: 'scored',
          probabilities: overlapProbabilities(instruction, input, choices),
          inputTokens: tokens,
          timings: { queue: 0, tokenize: 0, infer: 0 },
        }
      );
    },
    prepare: async ({ model, revision, choices }) =>
      tooLong(choices, limitsOf(model, revision)) ?? { kind: 'prepared' },
  });
}
