/** The rules of a catalog's fields, as the protos state them, for whoever makes a catalog without a request. */
import { CreateCatalogRequestSchema } from '../../gen/umpire/v1/catalog_service_pb.ts';
import type { DomainError } from './errors.ts';
import { fieldRules } from './field-rules.ts';

const RULES = fieldRules(CreateCatalogRequestSchema);

/** The version of a catalog whose request leaves it out. */
export const DEFAULT_VERSION = '1';
/** The only visibility: a catalog is seen by its owner alone. */
export const PRIVATE = 'private';

/** What a caller or an operator sends to create a catalog. */
export interface CatalogDraft {
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
