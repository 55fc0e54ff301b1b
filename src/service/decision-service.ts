/** `umpire.v1.DecisionService`: one question in, one of its choices out. */
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import type { ChoiceSets } from '../domain/choice-sets.ts';
import { choiceCountFault } from '../domain/choices.ts';
import type { Decider, DecisionResult } from '../domain/decide.ts';
import { DomainError } from '../domain/errors.ts';
import { optionalText, type RequestRules, requiredText } from './field-rules.ts';
import { type MapEntries, mapEntries, type WithMapEntries } from './map-entries.ts';
import { type Procedure, procedure } from './procedure.ts';

const rulesOf = (choiceSets: ChoiceSets): RequestRules => ({
  model: requiredText('model'),
  input: requiredText('input'),
  instruction: requiredText('instruction'),
  choices: {
    presence: (fields) =>
      fields.has('choices') === fields.has('catalog')
        ? new DomainError('CHOICES_OR_CATALOG', 'send exactly one of choices and catalog', { param: 'choices' })
        : undefined,
    items: choiceCountFault,
    value: (choices: readonly string[]) => choiceSets.fault(choices),
  },
  catalog: optionalText('catalog'),
});

/** The procedures of the service over a decider. */
export function createDecisionService(options: {
  readonly decider: Decider;
  readonly choiceSets: ChoiceSets;
}): readonly Procedure[] {
  const { decider, choiceSets } = options;
  return [
    procedure({
      method: DecisionService.method.createDecision,
      rules: rulesOf(choiceSets),
      access: 'anyone',
      limits: 'decision',
      handle: async (request, call) => {
        const { model, input, instruction, catalog } = request;
        const choices = catalog === undefined ? request.choices : undefined;
        const result = await decider.decide({ model, input, instruction, choices, catalog }, call);
        call.facts.model = result.model;
        call.facts.inputTokens = result.inputTokens;
        if (result.unread !== undefined) call.facts.unread = result.unread;
        call.facts.choices = result.choices.length;
        call.facts.confidence = result.confidence;
        if (result.learned !== undefined) call.facts.learned = result.learned;
        call.facts.timings = { ...call.facts.timings, ...result.timings };
        return {
          decision: {
            id: result.id,
            object: 'decision',
            model: result.model,
            output: new Output(result),
            usage: { inputTokens: result.inputTokens },
          },
        };
      },
    }),
  ];
}

/** A DecisionOutput whose map is built only for those who read it as an object. */
class Output implements WithMapEntries {
  readonly choice: string;
  readonly confidence: number;
  readonly [mapEntries]: MapEntries;

  constructor(result: DecisionResult) {
    this.choice = result.choice;
    this.confidence = result.confidence;
    this[mapEntries] = { keys: result.choices, values: result.probabilities };
  }

  /**
   * Choices may be called `__proto__` or `10`: fromEntries defines each as a property of its own, assignment would not.
   */
  get probabilities(): Record<string, number> {
    const { keys, values } = this[mapEntries];
    return Object.fromEntries(keys.map((choice, index) => [choice, values[index] as number]));
  }
}
