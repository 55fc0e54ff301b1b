/** Contract 2.7, 3.2 and 4.4 to 4.6: the life of a catalog, and decisions with it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, jsonOf } from '../answer.ts';
import type { Check } from '../check.ts';
import { hasStatus, type Refusal, refuses, same } from '../expect.ts';
import type { Kit, Question } from '../kit.ts';
import { Skipped } from '../outcome.ts';

/** Milliseconds after a deletion at which no replica may decide with the catalog: twice what the contract promises. */
const FORGOTTEN = 2_000;
/** Milliseconds between two decisions that look for this. */
const LOOK = 200;

/** What reading or deleting a catalog gets that the caller does not have. */
const NOT_FOUND: Refusal = { status: 404, code: 'catalog_not_found', param: 'id' };
/** What a decision gets that names such a catalog. */
const UNKNOWN: Refusal = { status: 400, code: 'unknown_catalog', param: 'catalog' };
/** Choices that are not in code-unit order, and that something on the way might change: spaces, two forms of é. */
const CHOICES = ['shipping', 'billing', ' billing', 'caf\u00e9', 'cafe\u0301', '10', '__proto__'];

/** A catalog that was created, and the question that its choices are from. */
interface Made {
  readonly id: string;
  readonly question: Question;
}

/** Creates a catalog with the question's choices. */
async function make(kit: Kit, extra: object = {}): Promise<Made> {
  const [id, question] = [kit.newCatalogId(), await kit.question()];
  const { model, choices } = question;
  hasStatus(await kit.catalog('POST', { id, model, choices, ...extra }), 201);
  return { id, question };
}

const asking = ({ question: { model, input, instruction }, id }: Made) => ({ model, input, instruction, catalog: id });

/** An answer's status, names of headers, and body without the id that was asked for, which a message may repeat. */
const nameless = ({ status, headers, body }: Answer, id: string): object => ({
  status,
  headers: Object.keys(headers).toSorted(),
  body: body.toString().replaceAll(id, 'ID'),
});

const NEEDS_KEY = ['key'] as const;

/** The checks of a catalog's life, and of who sees it. */
export const CATALOG_CHECKS: readonly Check[] = [
  {
    id: 'catalogs.create',
    section: '4.4',
    promise: 'a catalog of id, model and choices is created: 201, version "1" and visibility "private" by default',
    tried: 'POST /v1/catalogs without version and visibility',
    needs: NEEDS_KEY,
    async run(kit) {
      const id = kit.newCatalogId();
      const { model, choices } = await kit.question();
      const answer = await kit.catalog('POST', { id, model, choices });
      hasStatus(answer, 201);
      same('catalog', jsonOf(answer), { id, model, choices, version: '1', visibility: 'private' });
    },
  },
  {
    id: 'catalogs.location',
    section: '4.4',
    promise: 'the answer to a creation says where the catalog is',
    tried: 'Location of a created catalog',
    needs: NEEDS_KEY,
    async run(kit) {
      const id = kit.newCatalogId();
      const { model, choices } = await kit.question();
      const answer = await kit.catalog('POST', { id, model, choices });
      hasStatus(answer, 201);
      same('Location', answer.headers.location, `/v1/catalogs/${id}`);
    },
  },
  {
    id: 'catalogs.labels',
    section: '2.7',
    promise: 'version is the caller’s label, and private is a visibility',
    tried: 'catalogs of version "2026-11 ü" and of an empty one, and visibility private, created and read',
    needs: NEEDS_KEY,
    async run(kit) {
      for (const label of ['2026-11 \u00fc', '']) {
        const labels = { version: label, visibility: 'private' };
        const { id } = await make(kit, labels);
        const { version, visibility } = jsonOf(await kit.catalog('GET', id));
        same('labels', { version, visibility }, labels);
      }
    },
  },
  {
    id: 'catalogs.read',
    section: '4.5',
    promise: 'a catalog is read as it was sent: its choices byte for byte and in their order',
    tried: 'GET of a catalog with odd choices',
    needs: NEEDS_KEY,
    async run(kit) {
      const { id, question } = await make(kit, { choices: CHOICES });
      const answer = await kit.catalog('GET', id);
      hasStatus(answer, 200);
      const { version: _, visibility: __, ...catalog } = jsonOf(answer);
      same('catalog', catalog, { id, model: question.model, choices: CHOICES });
    },
  },
  {
    id: 'catalogs.decide',
    section: '4.1',
    promise: 'a catalog decides exactly as its choices would in the request',
    tried: 'a question with the catalog, and with the choices',
    needs: NEEDS_KEY,
    async run(kit) {
      const made = await make(kit);
      const wanted = await kit.decision(made.question, kit.key);
      same('decision', await kit.decision(asking(made), kit.key), wanted);
    },
  },
  {
    id: 'catalogs.decide-revision',
    section: '4.1',
    promise: 'a catalog belongs to a model, whatever its revision',
    tried: 'a question with the catalog and the model’s qualified name',
    needs: NEEDS_KEY,
    async run(kit) {
      const made = await make(kit);
      const { model } = await kit.decision(made.question);
      hasStatus(await kit.decide({ ...asking(made), model }, kit.key), 200);
    },
  },
  {
    id: 'catalogs.unchanged',
    section: '3.2',
    promise: 'a decision does not change a catalog',
    tried: 'a catalog before and after a decision with it',
    needs: NEEDS_KEY,
    async run(kit) {
      const made = await make(kit);
      const before = jsonOf(await kit.catalog('GET', made.id));
      hasStatus(await kit.decide(asking(made), kit.key), 200);
      same('catalog', jsonOf(await kit.catalog('GET', made.id)), before);
    },
  },
  {
    id: 'catalogs.exists',
    section: '4.4',
    promise: 'an id that is taken is 409, and the stored catalog stays as it is',
    tried: 'the same id twice, with other choices',
    needs: NEEDS_KEY,
    async run(kit) {
      const { id, question } = await make(kit);
      const again = await kit.catalog('POST', { id, model: question.model, choices: ['other', 'choices'] });
      refuses(again, { status: 409, code: 'catalog_already_exists', param: 'id' });
      same('choices', jsonOf(await kit.catalog('GET', id)).choices, question.choices);
    },
  },
  {
    id: 'catalogs.delete',
    section: '4.6',
    promise: 'a deletion is 204 without a body, and the catalog is gone: 404 to read and to delete again',
    tried: 'DELETE, GET and DELETE',
    needs: NEEDS_KEY,
    async run(kit) {
      const { id } = await make(kit);
      const answer = await kit.catalog('DELETE', id);
      hasStatus(answer, 204);
      same('body', answer.body.length, 0);
      refuses(await kit.catalog('GET', id), NOT_FOUND);
      refuses(await kit.catalog('DELETE', id), NOT_FOUND);
    },
  },
  {
    id: 'catalogs.deleted-decides-no-more',
    section: '3.2',
    promise: 'a second after its deletion no replica decides with a catalog',
    tried: 'decisions after a deletion, for up to two seconds',
    needs: NEEDS_KEY,
    async run(kit) {
      const made = await make(kit);
      hasStatus(await kit.decide(asking(made), kit.key), 200);
      hasStatus(await kit.catalog('DELETE', made.id), 204);
      const end = performance.now() + FORGOTTEN;
      let answer = await kit.decide(asking(made), kit.key);
      while (answer.status === 200 && performance.now() < end) {
        await sleep(LOOK);
        answer = await kit.decide(asking(made), kit.key);
      }
      refuses(answer, UNKNOWN);
    },
  },
  {
    id: 'catalogs.create-again',
    section: '3.2',
    promise: 'a change is a deletion and a creation: a freed id can be used at once',
    tried: 'create, delete and create with other choices, then read',
    needs: NEEDS_KEY,
    async run(kit) {
      const { id, question } = await make(kit);
      hasStatus(await kit.catalog('DELETE', id), 204);
      const choices = ['other', 'choices'];
      hasStatus(await kit.catalog('POST', { id, model: question.model, choices, version: '2' }), 201);
      same('choices', jsonOf(await kit.catalog('GET', id)).choices, choices);
    },
  },
  {
    id: 'catalogs.unknown',
    section: '4.5',
    promise: 'a catalog that does not exist is 404, also under a name that no catalog can have',
    tried: 'GET and DELETE of an unknown id, of a b, a:b and {a}, and of 129 characters',
    needs: NEEDS_KEY,
    async run(kit) {
      for (const id of [kit.newCatalogId(), 'a b', 'a:b', '{a}', 'x'.repeat(129)]) {
        refuses(await kit.catalog('GET', id), NOT_FOUND);
        refuses(await kit.catalog('DELETE', id), NOT_FOUND);
      }
    },
  },
  {
    id: 'catalogs.unknown-decides',
    section: '4.1',
    promise: 'a decision with a catalog that does not exist is 400',
    tried: 'a question with the key and an unknown catalog, and with names that no catalog can have',
    needs: NEEDS_KEY,
    async run(kit) {
      const question = await kit.question();
      for (const id of [
        kit.newCatalogId(),
        '../c',
        '\u00fc',
        '__proto__',
        '{acme}:catalog:c',
        '\0',
        'x'.repeat(5000),
      ]) {
        refuses(await kit.decide(asking({ id, question }), kit.key), UNKNOWN);
      }
    },
  },
  {
    id: 'catalogs.other-model',
    section: '4.1',
    promise: 'a catalog of another model is refused',
    tried: 'a question to a second ready model with a catalog of the first, if there are two',
    needs: NEEDS_KEY,
    async run(kit) {
      const { id: own } = await kit.model();
      const other = (await kit.models()).find(({ id, status }) => id !== own && status === 'ready');
      if (other === undefined) throw new Skipped('only one model is ready');
      const answer = await kit.decide({ ...asking(await make(kit)), model: other.id }, kit.key);
      refuses(answer, { status: 400, code: 'catalog_model_mismatch', param: 'model' });
    },
  },
  {
    id: 'catalogs.foreign',
    section: '5',
    promise: 'another owner’s catalog looks exactly like one that does not exist',
    tried:
      'GET, DELETE and a decision with the key of another owner, before and after its deletion, compared with an unused id',
    needs: ['key', 'other-key'],
    async run(kit) {
      const made = await make(kit);
      const [foreign, missing] = [made.id, kit.newCatalogId()];
      for (const method of ['GET', 'DELETE'] as const) {
        const [first, second] = [
          await kit.catalog(method, foreign, kit.otherKey),
          await kit.catalog(method, missing, kit.otherKey),
        ];
        refuses(first, NOT_FOUND);
        same(`body of ${method}`, nameless(first, foreign), nameless(second, missing));
      }
      const first = await kit.decide(asking(made), kit.otherKey);
      const second = await kit.decide(asking({ ...made, id: missing }), kit.otherKey);
      refuses(first, UNKNOWN);
      same('body of a decision', nameless(first, foreign), nameless(second, missing));
      hasStatus(await kit.catalog('GET', foreign), 200);
      hasStatus(await kit.catalog('DELETE', foreign), 204);
      const [gone, never] = [
        await kit.catalog('GET', foreign, kit.otherKey),
        await kit.catalog('GET', missing, kit.otherKey),
      ];
      same('body of a deleted one', nameless(gone, foreign), nameless(never, missing));
    },
  },
  {
    id: 'catalogs.ids-are-an-owners-own',
    section: '5',
    promise: 'two owners may use the same id',
    tried: 'the same id with two keys and different choices, then read with each key',
    needs: ['key', 'other-key'],
    async run(kit) {
      const { id, question } = await make(kit);
      const choices = ['other', 'choices'];
      hasStatus(await kit.catalog('POST', { id, model: question.model, choices }, kit.otherKey), 201);
      same('choices', jsonOf(await kit.catalog('GET', id)).choices, question.choices);
      same('choices of the other', jsonOf(await kit.catalog('GET', id, kit.otherKey)).choices, choices);
    },
  },
];
