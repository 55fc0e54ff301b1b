/** The two requests that this benchmark sends. */

/** A request body as an object. */
export interface DecisionBody {
  readonly model: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
}

/** A small request: one sentence and five choices. */
export const SMALL: DecisionBody = {
  model: 'instant',
  input: 'I was charged twice for my order and would like the second payment back.',
  instruction: 'Which team should handle this message?',
  choices: ['billing', 'shipping', 'technical support', 'sales', 'other'],
};

/** A large request: the same sentence and 300 choices of two or three words. */
export const LARGE: DecisionBody = {
  ...SMALL,
  choices: Array.from({ length: 300 }, (_, index) => `reason number ${index} of many`),
};
