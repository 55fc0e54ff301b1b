/** The mock's engine: any number of models that all decide by the overlap of words, within limits of their own. */
import { hash } from 'node:crypto';
import type { Engine, ModelLimits, ModelRevision, ModelStatus } from '../engine/engine.ts';
import { byCodeUnits } from '../engine/packages/manifest.ts';
import { createFunctionEngine } from './function-engine.ts';

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

// How the mock decides, so that a test can say beforehand what it will answer: the choice whose words occur in the
// input gets the most. A pure function of the request, the same on every machine.
//
//     share  = the share of the choice's words that occur in the input, 0 to 1
//     logit  = 4 × share + h, where h is a number from 0 to 1 that a hash of instruction, input and choice gives
//     p      = softmax over the choices
//
// A word is a run of letters and digits, in lower case; a token is a word or any other character that is not a space.

const TOKEN = /[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu;
const WORD = /[\p{L}\p{N}]+/gu;
/** A full match outweighs every hash. */
const WEIGHT = 4;

/** How many tokens a text has. */
function countTokens(text: string): number {
  let count = 0;
  for (const _ of text.matchAll(TOKEN)) count += 1;
  return count;
}

/** A probability for each choice, in their order. */
function overlapProbabilities(instruction: string, input: string, choices: readonly string[]): Float64Array {
  const there = new Set(wordsOf(input));
  const weights = Float64Array.from(choices, (choice) => {
    const words = wordsOf(choice);
    const share = words.length === 0 ? 0 : words.filter((word) => there.has(word)).length / words.length;
    return Math.exp(WEIGHT * share + fraction(JSON.stringify([instruction, input, choice])));
  });
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

function wordsOf(text: string): readonly string[] {
  return Array.from(text.matchAll(WORD), ([word]) => word.toLowerCase());
}

/** A number from 0 to below 1 that depends on the text alone. */
export function fraction(text: string): number {
  return Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16) / 2 ** 32;
}
