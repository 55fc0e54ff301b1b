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
        const result = await decider.decide(request, call);
        const { model, languages, inputTokens, unread, choices, confidence, learned, timings } = result;
        const said = { model, languages, inputTokens, unread, confidence, learned, timings: { ...timings } };
        Object.assign(call.facts, said, { choices: choices.length });
        return {
          decision: {
            id: result.id,
            object: 'decision',
            model,
            output: {
              choice: result.choice,
              confidence,
              // Choices may be called `__proto__`: fromEntries makes it a property of its own, assignment would not.
              probabilities: Object.fromEntries(
                choices.map((choice, index) => [choice, result.probabilities[index] as number]),
              ),
            },
            usage: { inputTokens },
          },
        };
      },
    }),
  ];
}
