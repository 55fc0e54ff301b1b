/**
 * The rules of a catalog's fields, one function each, so that the service layer can judge a field as soon as it is
 * read. Each returns the fault or undefined. The contract's order of fields is id, model, choices, version, visibility.
 */
import { choicesFault } from './choices.ts';
import { DomainError } from './errors.ts';

/** Letters, digits, `.`, `_`, `-`; at most 128. */
const CATALOG_ID = /^[A-Za-z0-9._-]{1,128}$/;
const MAX_VERSION = 128;

/** What a catalog gets where the request leaves these out. */
export const DEFAULT_VERSION = '1';
/** The only visibility: a catalog is seen by its owner alone. */
export const PRIVATE = 'private';

/** Whether a string may be a catalog's id. `.` and `..` may not: URLs swallow them. */
export function isCatalogId(id: string): boolean {
  return id !== '.' && id !== '..' && CATALOG_ID.test(id);
}

/** INVALID_CATALOG_ID unless `isCatalogId`. */
export function catalogIdFault(id: string): DomainError | undefined {
  if (isCatalogId(id)) return undefined;
  return new DomainError(
    'INVALID_CATALOG_ID',
    "id must be 1 to 128 letters, digits, '.', '_' or '-', and neither '.' nor '..'",
    { param: 'id' },
  );
}

/** At most 128 characters (code points), well-formed. An empty label is a label. */
export function versionFault(version: string | undefined): DomainError | undefined {
  if (version === undefined) return undefined;
  if (!version.isWellFormed()) {
    return new DomainError('INVALID_VALUE', 'version is not well-formed text: it holds a lone surrogate', {
      param: 'version',
    });
  }
  // Two code units make one code point at most, so longer strings need no counting.
  if (version.length > 2 * MAX_VERSION || [...version].length > MAX_VERSION) {
    return new DomainError('INVALID_VALUE', `version must be at most ${MAX_VERSION} characters`, { param: 'version' });
  }
  return undefined;
}

/** `private` is the only value. */
export function visibilityFault(visibility: string | undefined): DomainError | undefined {
  if (visibility === undefined || visibility === PRIVATE) return undefined;
  return new DomainError('INVALID_VALUE', "visibility must be 'private'", { param: 'visibility' });
}

/** What a caller or an operator sends to create a catalog. */
export interface CatalogDraft {
  readonly id: string;
  /** Whether it is served is judged elsewhere. */
  readonly model: string;
  readonly choices: readonly string[];
  readonly version?: string | undefined;
  readonly visibility?: string | undefined;
}

/** The first fault of a draft, in the contract's order of fields. */
export function draftFault(draft: CatalogDraft): DomainError | undefined {
  return (
    catalogIdFault(draft.id) ??
    choicesFault(draft.choices) ??
    versionFault(draft.version) ??
    visibilityFault(draft.visibility)
  );
}
