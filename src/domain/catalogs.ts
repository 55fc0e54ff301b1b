/**
 * Catalogs: what an owner may create, read and delete, and how a decision finds one. Each owner has ids of its own, and
 * another owner's catalogs are never looked at, so a foreign catalog cannot be told from a missing one.
 */
import { CreateCatalogRequestSchema } from '../../gen/umpire/v1/catalog_service_pb.ts';
import type { Engine } from '../engine/engine.ts';
import type { StoreBudget } from '../stores/budget.ts';
import type { CatalogBounds, CatalogRecord, CatalogStore } from '../stores/catalog-store.ts';
import type { Call } from './call.ts';
import { CatalogCache, type DecidingCatalog } from './catalog-cache.ts';
import { DomainError } from './errors.ts';
import { orFault } from './failures.ts';
import { fieldRules } from './field-rules.ts';
import { qualifiedName, unknownModel, usableModel } from './models.ts';

/** A stored choice set as its owner reads it. */
export type Catalog = Pick<CatalogRecord, 'id' | 'model' | 'choices' | 'version' | 'visibility'>;

/** What keeps catalogs, encodes their choices and bounds them. */
export interface CatalogsOptions {
  readonly store: CatalogStore;
  readonly engine: Pick<Engine, 'models' | 'prepare'>;
  /** The most that one owner may have. */
  readonly bounds: CatalogBounds;
}

/** The catalogs of all owners. Every method throws STORE_UNAVAILABLE and STORAGE_CORRUPT. */
export class Catalogs {
  readonly #options: CatalogsOptions;
  readonly #cache: CatalogCache;

  constructor(options: CatalogsOptions) {
    this.#options = options;
    this.#cache = new CatalogCache(options.store);
  }

  /**
   * Stores a new catalog. Throws the fault of the first bad field; UNKNOWN_MODEL, MODEL_DISABLED, MODEL_UNAVAILABLE,
   * TOO_MANY_CHOICES, CANDIDATE_TOKENS_EXCEEDED, CATALOG_ALREADY_EXISTS, QUOTA_EXCEEDED, STORE_WRITE_UNCONFIRMED, and
   * the engine's errors.
   */
  async create(owner: string, draft: CatalogDraft, call: Call): Promise<Catalog> {
    const { store, engine, bounds } = this.#options;
    const fault = draftFault(draft);
    if (fault !== undefined) throw fault;
    // A catalog belongs to a model, whatever its revision.
    if (draft.model.includes('@')) throw unknownModel(draft.model, 'a catalog names a model without a revision');
    const model = usableModel(engine.models(), draft.model);
    if (draft.choices.length > model.limits.choices) {
      throw new DomainError(
        'TOO_MANY_CHOICES',
        `choices holds ${draft.choices.length} items, model '${model.id}' takes at most ${model.limits.choices}`,
        { param: 'choices' },
      );
    }
    // This look-up can save encoding 300 choices, which costs far more. It decides nothing: the write below does.
    if ((await orFault(() => store.stamp(owner, draft.id, call.storeBudget))) !== undefined)
      throw alreadyExists(draft.id);
    const choices = draft.choices.toSorted();
    const job = { model: model.id, revision: model.revision, choices };
    const prepared = await orFault(() => engine.prepare(job, call));
    if (prepared.kind === 'choice_too_long') {
      const place = draft.choices.indexOf(prepared.choice);
      throw new DomainError(
        'CANDIDATE_TOKENS_EXCEEDED',
        `choices[${place}] has ${prepared.tokens} tokens, ${qualifiedName(model)} takes at most ${prepared.limit} for each`,
        { param: 'choices' },
      );
    }
    const catalog: Catalog = {
      id: draft.id,
      model: draft.model,
      choices: [...draft.choices],
      version: draft.version ?? DEFAULT_VERSION,
      visibility: draft.visibility ?? PRIVATE,
    };
    const record = { ...catalog, createdAt: new Date().toISOString() };
    const outcome = await orFault(() => store.create(owner, record, bounds, call.storeBudget)).finally(() =>
      this.#cache.forget(owner, draft.id),
    );
    if (outcome.kind === 'exists') throw alreadyExists(draft.id);
    if (outcome.kind === 'full') {
      // No retryAfter: waiting does not help.
      throw new DomainError(
        'QUOTA_EXCEEDED',
        outcome.by === 'catalogs'
          ? `there may be at most ${bounds.catalogs} catalogs; delete one first`
          : `the choices of all catalogs may have at most ${bounds.bytes} bytes together; delete a catalog first`,
      );
    }
    return catalog;
  }

  /** The catalog as it is now; throws CATALOG_NOT_FOUND. */
  async get(owner: string, id: string, budget: StoreBudget): Promise<Catalog> {
    const found = isCatalogId(id) ? await orFault(() => this.#options.store.read(owner, id, budget)) : undefined;
    if (found === undefined) throw notFound(id);
    return found.record;
  }

  /** Throws CATALOG_NOT_FOUND, STORE_WRITE_UNCONFIRMED. */
  async delete(owner: string, id: string, budget: StoreBudget): Promise<void> {
    if (!isCatalogId(id)) throw notFound(id);
    const existed = await orFault(() => this.#options.store.delete(owner, id, budget)).finally(() =>
      this.#cache.forget(owner, id),
    );
    if (!existed) throw notFound(id);
  }

  /**
   * The catalog for a decision, or undefined: from a bounded cache, never older than a second. The same object for as
   * long as the catalog stays the same.
   */
  async resolve(owner: string, id: string, budget: StoreBudget): Promise<DecidingCatalog | undefined> {
    return isCatalogId(id) ? orFault(() => this.#cache.resolve(owner, id, budget)) : undefined;
  }
}

function alreadyExists(id: string): DomainError {
  return new DomainError('CATALOG_ALREADY_EXISTS', `catalog '${id}' exists; delete it before creating it anew`, {
    param: 'id',
  });
}

function notFound(id: string): DomainError {
  const name = isCatalogId(id) ? `catalog '${id}'` : 'a catalog of this id';
  return new DomainError('CATALOG_NOT_FOUND', `${name} does not exist`, { param: 'id' });
}

// The rules of a catalog's fields, as the protos state them, for whoever makes a catalog without a request.

const RULES = fieldRules(CreateCatalogRequestSchema);

/** The version of a catalog whose request leaves it out. */
export const DEFAULT_VERSION = '1';
/** The only visibility: a catalog is seen by its owner alone. */
export const PRIVATE = 'private';

/** What a caller or an operator sends to create a catalog. */
interface CatalogDraft {
  readonly id: string;
  /** Whether the model is served is not a rule of the field. */
  readonly model: string;
  readonly choices: readonly string[];
  readonly version?: string | undefined;
  readonly visibility?: string | undefined;
}

/** The first fault of a draft, in the contract's order of fields, or undefined. */
export function draftFault(draft: CatalogDraft): DomainError | undefined {
  for (const [name, { value: judge }] of Object.entries(RULES)) {
    const value = draft[name as keyof CatalogDraft];
    const fault = value === undefined ? undefined : judge?.(value as never);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Whether a string may be a catalog's id. */
export function isCatalogId(id: string): boolean {
  return RULES.id?.value?.(id as never) === undefined;
}

/** The fault in a catalog's version, or undefined; a version that is left out has none. */
export function versionFault(version: string | undefined): DomainError | undefined {
  return version === undefined ? undefined : RULES.version?.value?.(version as never);
}

/** The fault in a list of choices, or undefined. */
export function choicesFault(choices: readonly string[]): DomainError | undefined {
  return RULES.choices?.value?.(choices as never);
}
