/** `umpire.v1.ModelService`: model discovery. */
import { ModelService, ModelStatus } from '../../gen/umpire/v1/model_service_pb.ts';
import { DomainError } from '../domain/errors.ts';
import { defaultRevisions, findModel } from '../domain/models.ts';
import type { Engine, ModelRevision } from '../engine/engine.ts';
import { type Procedure, procedure } from './procedure.ts';

const STATUSES = {
  ready: ModelStatus.READY,
  unavailable: ModelStatus.UNAVAILABLE,
  disabled: ModelStatus.DISABLED,
} as const;

/** The procedures of the service over an engine's models. */
export function createModelService({ engine }: { readonly engine: Pick<Engine, 'models'> }): readonly Procedure[] {
  return [
    procedure({
      method: ModelService.method.listModels,
      access: 'anyone',
      limits: 'none',
      handle: () => ({ object: 'list', data: defaultRevisions(engine.models()).map(describe) }),
    }),
    procedure({
      method: ModelService.method.getModel,
      access: 'anyone',
      limits: 'none',
      handle: (request, call) => {
        const model = findModel(engine.models(), request.model);
        if (model === undefined) {
          throw new DomainError('MODEL_NOT_FOUND', 'no such model is served; GET /v1/models lists those that are', {
            param: 'model',
          });
        }
        if (model.languages !== undefined) call.facts.languages = model.languages;
        return { model: describe(model) };
      },
    }),
  ];
}

function describe(model: ModelRevision) {
  return {
    id: model.id,
    object: 'model',
    ownedBy: model.ownedBy,
    status: STATUSES[model.status],
    limits: model.limits,
  };
}
