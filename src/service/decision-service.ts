/** `umpire.v1.DecisionService`: one question in, one of its choices out. */
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import type { Decider } from '../domain/decide.ts';
import { type Procedure, procedure } from './procedure.ts';

/** The procedures of the service over a decider. */
export function createDecisionService({ decider }: { readonly decider: Decider }): readonly Procedure[] {
  return [
    procedure({
      method: DecisionService.method.createDecision,
      access: 'anyone',
      limits: 'decision',
      handle: async (request, call) => {
        const { model, input, instruction, catalog } = request;
        const choices = catalog === undefined ? request.choices : undefined;
        const result = await decider.decide({ model, input, instruction, choices, catalog }, call);
        call.facts.model = result.model;
        if (result.languages !== undefined) call.facts.languages = result.languages;
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
            output: {
              choice: result.choice,
              confidence: result.confidence,
              // Choices may be called `__proto__`: fromEntries makes it a property of its own, assignment would not.
              probabilities: Object.fromEntries(
                result.choices.map((choice, index) => [choice, result.probabilities[index] as number]),
              ),
            },
            usage: { inputTokens: result.inputTokens },
          },
        };
      },
    }),
  ];
}
