/**
 * `GET /v1/models` in both forms at once: `data` is OpenAI's list, `models` is TypeSafe's. The service does not say
 * when a model was made, so both dates are those of the epoch.
 */
import { type Model, ModelStatus } from '../../gen/umpire/v1/model_service_pb.ts';

/** One model as OpenAI's clients read it, under the name that was asked for. */
export const modelDescriptor = (name: string, { ownedBy }: Model): object => ({
  id: name,
  object: 'model',
  created: 0,
  owned_by: ownedBy,
});

/** The models that can be asked for, and their other names. */
export function modelList(models: readonly Model[], aliases: ReadonlyMap<string, string>): object {
  const served = models.filter(({ status }) => status !== ModelStatus.DISABLED);
  const named = [
    ...served.map((model) => [model.id, model] as const),
    ...[...aliases].flatMap(([alias, target]) => {
      const model = served.find(({ id }) => id === target.split('@', 1)[0]);
      return model === undefined ? [] : [[alias, model] as const];
    }),
  ];
  return {
    object: 'list',
    data: named.map(([name, model]) => modelDescriptor(name, model)),
    models: named.map(([name, { id, status, limits }]) => ({
      name,
      description:
        `${name === id ? '' : `${id}: `}up to ${limits?.choices} choices and ${limits?.inputTokens} tokens of input` +
        (status === ModelStatus.READY ? '' : '; unavailable now'),
      release_date: '1970-01-01',
    })),
  };
}
