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
      handle: async (request, call) => ({ decision: await decider.decide(request, call) }),
    }),
  ];
}
