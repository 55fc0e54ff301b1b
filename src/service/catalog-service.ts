/** `umpire.v1.CatalogService`: an owner's named choice sets. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type CatalogSchema, CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import { authenticationRequired } from '../domain/authenticate.ts';
import type { Call } from '../domain/call.ts';
import type { Catalog, Catalogs } from '../domain/catalogs.ts';
import { type Procedure, procedure } from './procedure.ts';

/** Bytes of a choice in addition to its text, and of a message in addition to its choices. */
const CHOICE_OVERHEAD = 4;
const MESSAGE_OVERHEAD = 1024;

/** The procedures of the service over the domain's catalogs. */
export function createCatalogService({ catalogs }: { readonly catalogs: Catalogs }): readonly Procedure[] {
  return [
    procedure({
      method: CatalogService.method.createCatalog,
      access: 'keyed',
      limits: 'catalog',
      handle: async (request, call) => {
        call.facts.choices = request.choices.length;
        return { catalog: message(await catalogs.create(ownerOf(call), request, call)) };
      },
    }),
    procedure({
      method: CatalogService.method.getCatalog,
      access: 'keyed',
      limits: 'catalog',
      sizeOf: ({ catalog }) => sizeOf(catalog?.choices ?? []),
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

/**
 * About how many bytes choices take in a message. JSON's escapes can make it six times as many; what they add is
 * counted once the response waits to be read.
 */
function sizeOf(choices: readonly string[]): number {
  return choices.reduce((sum, choice) => sum + CHOICE_OVERHEAD + Buffer.byteLength(choice), MESSAGE_OVERHEAD);
}

function message(catalog: Catalog): MessageInitShape<typeof CatalogSchema> {
  const { id, model, choices, version, visibility } = catalog;
  return { id, model, choices: [...choices], version, visibility };
}
