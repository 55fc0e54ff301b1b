/** `umpire.v1.CatalogService`: an owner's named choice sets. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type CatalogSchema, CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import { authenticationRequired } from '../domain/authenticate.ts';
import type { Catalog, Catalogs } from '../domain/catalogs.ts';
import { jobTerms } from '../domain/decide.ts';
import type { Call } from './call.ts';
import { type Procedure, procedure } from './procedure.ts';

/** The procedures of the service over the domain's catalogs. */
export function createCatalogService({ catalogs }: { readonly catalogs: Catalogs }): readonly Procedure[] {
  return [
    procedure({
      method: CatalogService.method.createCatalog,
      access: 'keyed',
      limits: 'catalog',
      handle: async (request, call) => {
        call.facts.choices = request.choices.length;
        return { catalog: message(await catalogs.create(ownerOf(call), request, jobTerms(call), call.storeBudget)) };
      },
    }),
    procedure({
      method: CatalogService.method.getCatalog,
      access: 'keyed',
      limits: 'catalog',
      reads: 'catalog',
      handle: async (request, call) => ({
        catalog: message(await catalogs.get(ownerOf(call), request.id, call.storeBudget)),
      }),
    }),
    procedure({
      method: CatalogService.method.deleteCatalog,
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

function message(catalog: Catalog): MessageInitShape<typeof CatalogSchema> {
  const { id, model, choices, version, visibility } = catalog;
  return { id, model, choices: [...choices], version, visibility };
}
