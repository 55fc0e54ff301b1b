/** `umpire.v1.DecisionService`: one question in, one of its choices out. */
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { choicesFault } from '../domain/choices.ts';
import type { Decider } from '../domain/decide.ts';
import { DomainError } from '../domain/errors.ts';
import { optionalText, type RequestRules, requiredText } from './field-rules.ts';
import { type Procedure, procedure } from './procedure.ts';

const rules: RequestRules = {
  model: requiredText('model'),
  input: requiredText('input'),
  instruction: requiredText('instruction'),
  choices: {
    presence: (fields) =>
      fields.has('choices') === fields.has('catalog')
        ? new DomainError('CHOICES_OR_CATALOG', 'send exactly one of choices and catalog', { param: 'choices' })
        : undefined,
    value: choicesFault,
  },
  catalog: optionalText('catalog'),
};

/** The procedures of the service over a decider. */
export function createDecisionService({ decider }: { readonly decider: Decider }): readonly Procedure[] {
  return [
    procedure({
      method: DecisionService.method.createDecision,
      rules,
      access: 'anyone',
      limits: 'decision',
      handle: async (request, call) => {
        const { model, input, instruction, catalog } = request;
        const choices = catalog === undefined ? request.choices : undefined;
        const result = await decider.decide({ model, input, instruction, choices, catalog }, call);
        call.facts.model = result.model;
        call.facts.inputTokens = result.inputTokens;
        call.facts.choices = result.choices.length;
        call.facts.confidence = result.confidence;
        call.facts.timings = { ...call.facts.timings, ...result.timings };
        return {
          decision: {
            id: result.id,
            object: 'decision',
            model: result.model,
            output: {
              choice: result.choice,
              confidence: result.confidence,
              probabilities: byChoice(result.choices, result.probabilities),
            },
            usage: { inputTokens: result.inputTokens },
          },
        };
      },
    }),
  ];
}

/** Choices may be called `__proto__` or `10`: fromEntries defines each as a property of its own, assignment would not. */
function byChoice(choices: readonly string[], probabilities: Float64Array): Record<string, number> {
  return Object.fromEntries(choices.map((choice, index) => [choice, probabilities[index] as number]));
}
