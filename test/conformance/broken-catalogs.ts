/** For each check of catalogs: a service that breaks that promise. */
import { confidence, header, json, on, status, text, type When } from './breaking.ts';
import { choicesOf, type Row, refused } from './rows.ts';
import type { SeenRequest } from './tape.ts';

/** A request about catalogs. `key`: whose it is; undefined for any. */
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
  (when: (request: SeenRequest, before: readonly SeenRequest[]) => boolean): When =>
  (request, _, before) =>
    request.path === '/v1/decisions' &&
    'catalog' in request.json &&
    'authorization' in request.headers &&
    when(request, before);
const answered =
  (code: number, when: When): When =>
  (request, answer, before) =>
    answer.status === code && when(request, answer, before);

/** The table; `other` is the header of the other owner's key. */
export const brokenCatalogs = (other: string): readonly Row[] => {
  const byOther = ({ headers }: SeenRequest): boolean => headers.authorization === other;
  return [
    {
      check: 'catalogs.create',
      breakages: [
        on(
          answered(
            201,
            catalog('POST', ({ json: body }) => !('version' in body)),
          ),
          json((body) => ({ ...body, version: '2' })),
        ),
        on(
          answered(201, catalog('POST')),
          json((body) => ({ ...body, owner: 'acme' })),
        ),
      ],
    },
    { check: 'catalogs.location', breakages: [on(answered(201, catalog('POST')), header('location', undefined))] },
    {
      check: 'catalogs.labels',
      breakages: [
        on(
          catalog('GET'),
          json((body) => (String(body.version).startsWith('2026') ? { ...body, version: '2026-11' } : body)),
        ),
      ],
    },
    {
      check: 'catalogs.read',
      breakages: [
        on(
          catalog('GET'),
          json((body) => (choicesOf(body).length === 7 ? { ...body, choices: choicesOf(body).toSorted() } : body)),
        ),
        on(
          catalog('GET'),
          json((body) => ({
            ...body,
            ...(body.choices === undefined
              ? {}
              : { choices: body.choices.map((choice: string) => choice.normalize('NFC')) }),
          })),
        ),
      ],
    },
    {
      check: 'catalogs.decide',
      breakages: [
        on(
          answered(
            200,
            deciding(({ json: body }) => body.model === 'mock'),
          ),
          confidence,
        ),
      ],
    },
    {
      check: 'catalogs.decide-revision',
      breakages: [
        on(
          deciding(({ json: body }) => body.model === 'mock@r1'),
          status(400),
        ),
      ],
    },
    {
      check: 'catalogs.unchanged',
      breakages: [
        on(
          (request, answer, before) =>
            catalog('GET')(request, answer, before) &&
            before.some((earlier) => deciding(() => true)(earlier, answer, [])),
          (answer, request) =>
            answer.status === 200 ? json((body) => ({ ...body, version: '2' }))(answer, request) : answer,
        ),
      ],
    },
    {
      check: 'catalogs.exists',
      breakages: [
        ...refused(answered(409, catalog('POST'))),
        // An overwrite that says that it was none.
        (request, answer, before) =>
          answered(200, catalog('GET'))(request, answer, before) &&
          before.filter(({ path, method }) => method === 'POST' && path === '/v1/catalogs').length === 2 &&
          before.every(({ method }) => method !== 'DELETE') &&
          !before.some(byOther)
            ? json((body) => ({ ...body, choices: ['other', 'choices'] }))(answer, request)
            : undefined,
      ],
    },
    {
      check: 'catalogs.delete',
      breakages: [
        on(answered(204, catalog('DELETE')), text('{}')),
        (request, answer, before) =>
          catalog('DELETE')(request, answer, before) &&
          before.some(({ method }) => method === 'DELETE') &&
          answer.status === 404 &&
          !before.some(byOther) &&
          !/a%20b/.test(request.path) &&
          before.some(({ method }) => method === 'POST')
            ? { ...answer, status: 204, body: Buffer.alloc(0) }
            : undefined,
      ],
    },
    {
      check: 'catalogs.deleted-decides-no-more',
      breakages: refused(
        deciding((request, before) => before.some(({ method }) => method === 'DELETE') && !byOther(request)),
      ),
    },
    {
      check: 'catalogs.create-again',
      breakages: [
        on(
          draft(({ version }) => version === '2'),
          status(409),
        ),
      ],
    },
    { check: 'catalogs.unknown', breakages: refused(catalog('GET', ({ path }) => path.endsWith('a%20b'))) },
    {
      check: 'catalogs.unknown-decides',
      breakages: refused(deciding((_, before) => before.every(({ path }) => path !== '/v1/catalogs'))),
    },
    { check: 'catalogs.other-model', breakages: refused(deciding(({ json: body }) => body.model === 'second')) },
    {
      check: 'catalogs.foreign',
      breakages: [
        on(answered(404, catalog('GET', byOther)), status(403)),
        // Tells what is there from what is not.
        (request, answer, before) =>
          deciding(byOther)(request, answer, before) && /foreign-0/.test(String(request.json.catalog))
            ? json(({ error }) => ({ error: { ...error, message: 'this catalog is not yours' } }))(answer, request)
            : undefined,
      ],
    },
    { check: 'catalogs.ids-are-an-owners-own', breakages: [on(catalog('POST', byOther), status(409))] },
    { check: 'catalogs.missing-id', breakages: refused(draft((body) => !('id' in body))) },
    { check: 'catalogs.missing-model', breakages: refused(draft((body) => !('model' in body) && 'id' in body)) },
    { check: 'catalogs.missing-choices', breakages: refused(draft((body) => !('choices' in body) && 'model' in body)) },
    { check: 'catalogs.bad-id', breakages: refused(draft(({ id }) => id === '..' || id === 'a\n')) },
    { check: 'catalogs.bad-model', breakages: refused(draft(({ model }) => model === 'mock@r1')) },
    { check: 'catalogs.bad-choices', breakages: refused(draft((body) => choicesOf(body).length === 301)) },
    { check: 'catalogs.type-of-choices', breakages: refused(draft(({ choices }) => choices === null)) },
    { check: 'catalogs.model-limit-of-choices', breakages: refused(draft((body) => choicesOf(body).length === 251)) },
    { check: 'catalogs.long-choice', breakages: refused(draft((body) => String(choicesOf(body)[1]).length > 200)) },
    { check: 'catalogs.bad-version', breakages: refused(draft(({ version }) => String(version).length === 129)) },
    { check: 'catalogs.bad-visibility', breakages: refused(draft(({ visibility }) => visibility === 'public')) },
    { check: 'catalogs.unknown-property', breakages: refused(draft((body) => 'owner' in body)) },
    {
      check: 'catalogs.longest-id',
      breakages: [
        on(
          catalog('GET', ({ path }) => path.length > 140),
          status(404),
        ),
        on(
          draft(({ id }) => String(id).length === 128),
          status(400),
        ),
      ],
    },
  ];
};
