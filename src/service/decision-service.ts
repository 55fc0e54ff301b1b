/** `umpire.v1.DecisionService`: one question in, one of its choices out. */
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import type { Decider, DecisionResult } from '../domain/decide.ts';
import { type MapEntries, mapEntries, type WithMapEntries } from './map-entries.ts';
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
        call.facts.inputTokens = result.inputTokens;
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
