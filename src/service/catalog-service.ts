/** `umpire.v1.CatalogService`: an owner's named choice sets. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type CatalogSchema, CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import { authenticationRequired } from '../domain/authenticate.ts';
import { catalogIdFault, versionFault, visibilityFault } from '../domain/catalog-rules.ts';
import type { Catalog, Catalogs } from '../domain/catalogs.ts';
import { choiceCountFault, choicesFault } from '../domain/choices.ts';
import { jobTerms } from '../domain/decide.ts';
import { DomainError } from '../domain/errors.ts';
import type { Call } from './call.ts';
import { type FieldRule, type RequestRules, requiredText } from './field-rules.ts';
import { type Procedure, procedure } from './procedure.ts';

const required = (name: string, value: FieldRule['value']): FieldRule => ({
  presence: (fields) =>
    fields.has(name) ? undefined : new DomainError('MISSING_FIELD', `${name} is required`, { param: name }),
  ...(value === undefined ? {} : { value }),
});

const CREATION: RequestRules = {
  // An id of another type is as little an id as one with a slash.
  id: { ...required('id', catalogIdFault), wrongType: 'INVALID_CATALOG_ID' },
  model: requiredText('model'),
  choices: { ...required('choices', choicesFault), items: choiceCountFault },
  version: { value: versionFault },
  visibility: { value: visibilityFault },
};

/** Bytes of a choice beside its text, and of a message beside its choices. */
const CHOICE_OVERHEAD = 4;
const MESSAGE_OVERHEAD = 1024;

/** An id that cannot be a catalog's is one that does not exist: the domain says so without a look-up. */
const BY_ID: RequestRules = { id: required('id', undefined) };

/** The procedures of the service over the domain's catalogs. */
export function createCatalogService({ catalogs }: { readonly catalogs: Catalogs }): readonly Procedure[] {
  return [
    procedure({
      method: CatalogService.method.createCatalog,
      rules: CREATION,
      access: 'keyed',
      limits: 'catalog',
      handle: async (request, call) => {
        call.facts.choices = request.choices.length;
        return { catalog: message(await catalogs.create(ownerOf(call), request, jobTerms(call), call.storeBudget)) };
      },
    }),
    procedure({
      method: CatalogService.method.getCatalog,
      rules: BY_ID,
      access: 'keyed',
      limits: 'catalog',
      sizeOf: ({ catalog }) => sizeOf(catalog?.choices ?? []),
      handle: async (request, call) => ({
        catalog: message(await catalogs.get(ownerOf(call), request.id, call.storeBudget)),
      }),
    }),
    procedure({
      method: CatalogService.method.deleteCatalog,
      rules: BY_ID,
      access: 'keyed',
      limits: 'catalog',
      handle: async (request, call) => {
        await catalogs.delete(ownerOf(call), request.id, call.storeBudget);
        return {};
      },
    }),
  ];
}

function ownerOf({ caller }: Call): string {
  if (caller.kind !== 'key') throw authenticationRequired();
  return caller.owner;
}

/** Bytes of choices in a message. What JSON must escape takes up to six times as many, which is seen once it waits to be read. */
function sizeOf(choices: readonly string[]): number {
  return choices.reduce((sum, choice) => sum + CHOICE_OVERHEAD + Buffer.byteLength(choice), MESSAGE_OVERHEAD);
}

function message(catalog: Catalog): MessageInitShape<typeof CatalogSchema> {
  const { id, model, choices, version, visibility } = catalog;
  return { id, model, choices: [...choices], version, visibility };
}
