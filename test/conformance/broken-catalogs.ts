/** For each check of catalogs: a service that breaks that promise. */
import { confidence, header, json, status, text, type When } from './breaking.ts';
import { answered, choicesOf, type Row } from './rows.ts';
import type { SeenRequest } from './tape.ts';

/** A request about catalogs. */
const catalog =
  (method: string, when: (request: SeenRequest) => boolean = () => true): When =>
  (request) =>
    request.protocol === 'http1' &&
    request.method === method &&
    request.path.startsWith('/v1/catalogs') &&
    when(request);
const draft = (when: (body: Readonly<Record<string, unknown>>) => boolean): When =>
  catalog('POST', ({ json: body, headers }) => 'authorization' in headers && when(body));
const deciding =
  (when: (request: SeenRequest, before: readonly SeenRequest[]) => boolean = () => true): When =>
  (request, _, before) =>
    request.path === '/v1/decisions' &&
    'catalog' in request.json &&
    'authorization' in request.headers &&
    when(request, before);

/** The table; `other` is the header of the other owner's key. */
export const brokenCatalogs = (other: string): readonly Row[] => {
  const byOther = ({ headers }: SeenRequest): boolean => headers.authorization === other;
  const made = answered(201, catalog('POST'));
  return [
    [
      'catalogs.create',
      answered(
        201,
        catalog('POST', ({ json: body }) => !('version' in body)),
      ),
      json((body) => ({ ...body, version: '2' })),
    ],
    ['catalogs.create', made, json((body) => ({ ...body, owner: 'acme' }))],
    ['catalogs.location', made, header('location', undefined)],
    [
      'catalogs.labels',
      catalog('GET'),
      json((body) => (String(body.version).startsWith('2026') ? { ...body, version: '2026-11' } : body)),
    ],
    [
      'catalogs.read',
      catalog('GET'),
      [
        json((body) => (choicesOf(body).length === 7 ? { ...body, choices: choicesOf(body).toSorted() } : body)),
        json((body) => ({
          ...body,
          ...(body.choices && { choices: body.choices.map((choice: string) => choice.normalize('NFC')) }),
        })),
      ],
    ],
    [
      'catalogs.decide',
      answered(
        200,
        deciding(({ json: body }) => body.model === 'mock'),
      ),
      confidence,
    ],
    ['catalogs.decide-revision', deciding(({ json: body }) => body.model === 'mock@r1'), status(400)],
    [
      'catalogs.unchanged',
      (request, answer, before) =>
        answered(200, catalog('GET'))(request, answer, before) &&
        before.some((earlier) => deciding()(earlier, answer, [])),
      json((body) => ({ ...body, version: '2' })),
    ],
    [
      'catalogs.exists',
      // An overwrite that says that it was none.
      (request, answer, before) =>
        answered(200, catalog('GET'))(request, answer, before) &&
        before.filter(({ path, method }) => method === 'POST' && path === '/v1/catalogs').length === 2 &&
        before.every(({ method }) => method !== 'DELETE') &&
        before.every(({ json: body }) => body.visibility === undefined) &&
        !before.some(byOther),
      json((body) => ({ ...body, choices: ['other', 'choices'] })),
    ],
    [
      'catalogs.delete',
      answered(
        204,
        catalog('DELETE', (request) => !request.path.includes('foreign')),
      ),
      text('{}'),
    ],
    [
      'catalogs.delete',
      (request, answer, before) =>
        answered(404, catalog('DELETE'))(request, answer, before) &&
        before.some(({ method }) => method === 'DELETE') &&
        !before.some(byOther) &&
        before.some(({ method }) => method === 'POST'),
      (answer) => ({ ...answer, status: 204, body: Buffer.alloc(0) }),
    ],
    ['catalogs.create-again', draft(({ version }) => version === '2'), status(409)],
    ['catalogs.foreign', answered(404, catalog('GET', byOther)), status(403)],
    [
      'catalogs.foreign',
      // Tells what is there from what is not.
      deciding((request) => byOther(request) && /foreign-0/.test(String(request.json.catalog))),
      [json(({ error }) => ({ error: { ...error, message: 'this catalog is not yours' } })), header('x-exists', '1')],
    ],
    ['catalogs.ids-are-an-owners-own', catalog('POST', byOther), status(409)],
    ['catalogs.longest-id', catalog('GET', ({ path }) => path.length === 141), status(404)],
    ['catalogs.longest-id', draft(({ id }) => String(id).length === 128), status(400)],
  ];
};
