/** Which model a request means: `<model_id>` is its default revision, `<model_id>@<revision>` that one. */
import type { ModelRevision } from '../engine/engine.ts';
import { DomainError } from './errors.ts';

/** The form of model ids and of revisions. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Seconds after which a caller may try an unavailable model again: about one restart of an engine with its backoff. */
const UNAVAILABLE_RETRY_SECONDS = 2;

/** The revision that a model string names, or undefined if none is served under it. */
export function findModel(models: readonly ModelRevision[], name: string): ModelRevision | undefined {
  return models.find((model) => name === qualifiedName(model) || (model.isDefault && name === model.id));
}

/** The string that always names this revision, as decisions carry it. */
export function qualifiedName(model: ModelRevision): string {
  return `${model.id}@${model.revision}`;
}

/** The default revision of each model. */
export function defaultRevisions(models: readonly ModelRevision[]): readonly ModelRevision[] {
  return models.filter((model) => model.isDefault);
}

/**
 * The revision that a decision or a catalog names, if it takes requests.
 *
 * @throws DomainError UNKNOWN_MODEL, MODEL_DISABLED (param `model`) or MODEL_UNAVAILABLE.
 */
export function usableModel(models: readonly ModelRevision[], name: string): ModelRevision {
  const model = findModel(models, name);
  if (model === undefined) throw unknownModel(name, undefined, models);
  if (model.status === 'disabled') {
    throw new DomainError('MODEL_DISABLED', `model '${name}' is disabled`, { param: 'model' });
  }
  if (model.status === 'unavailable') {
    throw new DomainError('MODEL_UNAVAILABLE', `model '${name}' cannot serve requests now`, {
      param: 'model',
      retryAfter: UNAVAILABLE_RETRY_SECONDS,
    });
  }
  return model;
}

/** The most revisions that a message names. */
const NAMED_REVISIONS = 5;

/**
 * The error UNKNOWN_MODEL. It repeats the name only if that has the form of one: messages must not repeat arbitrary
 * text. `why`: what is wrong with a name of that form; `models`: those of which the message names the same model's
 * revisions, or else some.
 */
export function unknownModel(name: string, why?: string, models: readonly ModelRevision[] = []): DomainError {
  const [id = '', revision, ...rest] = name.split('@', 3);
  const readable = NAME.test(id) && (revision === undefined || NAME.test(revision)) && rest.length === 0;
  if (!readable) {
    return fault(
      "model is not a valid '<model_id>' or '<model_id>@<revision>', such as 'umpire-mini' or 'umpire-mini@r11'",
    );
  }
  if (why !== undefined) return fault(`${why}: '${id}'`);
  const others = models.filter((model) => model.id === id).map(qualifiedName);
  const served =
    others.length > 0
      ? others
      : defaultRevisions(models).flatMap(({ id: other, status }) => (status === 'ready' ? other : []));
  const more = served.length > NAMED_REVISIONS ? ' and others' : '';
  return fault(
    `model '${name}' is not served; served here: ${served.slice(0, NAMED_REVISIONS).join(', ') || 'none'}${more}`,
  );
}

function fault(message: string): DomainError {
  return new DomainError('UNKNOWN_MODEL', message, { param: 'model' });
}
