/** Two resources that are not RPCs and say where the others are: `/`, and the OpenAPI document at `/openapi.json`. */
import { readFileSync } from 'node:fs';
import { VERSION } from '../../version.ts';

/** Where the document is served. */
const DOCUMENT_PATH = '/openapi.json';

/** The bodies by path. */
export type Pages = ReadonlyMap<string, Buffer>;

/** Reads the document that was generated from the protos. @throws the system's error. */
export function createPages(): Pages {
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
  return new Map([
    ['/', Buffer.from(JSON.stringify(front))],
    [DOCUMENT_PATH, Buffer.from(JSON.stringify(here))],
  ]);
}
