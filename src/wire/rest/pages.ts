/**
 * Two resources that are not RPCs and say where the others are: `/`, and the OpenAPI document at `/openapi.json`. Both
 * also say what the contract's frozen bodies have no field for: which revisions are served, and their languages.
 */
import { readFileSync } from 'node:fs';
import { qualifiedName } from '../../domain/models.ts';
import type { ModelRevision } from '../../engine/engine.ts';
import { VERSION } from '../../version.ts';

/** Where the document is served. */
const DOCUMENT_PATH = '/openapi.json';

/** The bodies by path, as they are now. */
export type Pages = ReadonlyMap<string, () => string>;

/** Reads the document that was generated from the protos. @throws the system's error. */
export function createPages(models: () => readonly ModelRevision[]): Pages {
  const document = JSON.parse(readFileSync(new URL('../../../gen/openapi.json', import.meta.url), 'utf8'));
  const front = {
    service: 'umpire',
    version: VERSION,
    contract: document.info.version,
    openapi: DOCUMENT_PATH,
    models: '/v1/models',
    decisions: '/v1/decisions',
    catalogs: '/v1/catalogs',
    health: { live: '/health/live', ready: '/health/ready' },
  };
  // Whoever read the document from this service calls this service, by the same name and through the same proxies.
  const here = { ...document, servers: [{ url: '/', description: 'The service that this document came from' }] };
  const served = (): string =>
    JSON.stringify(
      models().map((model) => ({
        model: qualifiedName(model),
        plain_name: model.isDefault,
        status: model.status,
        languages: model.languages ?? null,
      })),
    );
  const page = (fixed: object, name: string): (() => string) => {
    const open = JSON.stringify(fixed).slice(0, -1);
    return () => `${open},"${name}":${served()}}`;
  };
  return new Map([
    ['/', page(front, 'served')],
    [DOCUMENT_PATH, page(here, 'x-umpire-models')],
  ]);
}
