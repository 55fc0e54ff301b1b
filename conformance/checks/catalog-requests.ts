/** Contract 2.7 and 8: the rules of a catalog. Each row is a kind of wrong catalog, and the error that it gets. */
import { CatalogService } from '../../gen/umpire/v1/catalog_service_pb.ts';
import { MAX_CHOICES, MAX_ID, MAX_VERSION } from '../bounds.ts';
import type { Check } from '../check.ts';
import { hasStatus, type Refusal, refuses } from '../expect.ts';
import type { Kit, ListedModel } from '../kit.ts';
import { Skipped } from '../outcome.ts';
import { type WrongMessage, wrongMessages } from '../wrong-messages.ts';
import { tooLong } from './decision-requests.ts';
import { numbered } from './decisions.ts';

/** A valid catalog, from which wrong ones are made. */
interface Draft {
  readonly id: string;
  readonly model: string;
  readonly choices: readonly string[];
}

/** A kind of wrong catalog. */
interface WrongCatalog {
  readonly id: string;
  readonly section?: string;
  readonly promise: string;
  readonly tried: string;
  readonly bodies: (draft: Draft, model: ListedModel) => readonly object[];
  readonly refusal: Omit<Refusal, 'status'>;
}

/** The wrong catalogs, in the order in which they are tried. */
const ROWS: readonly WrongCatalog[] = [
  ...(['id', 'model', 'choices'] as const).map(
    (name): WrongCatalog => ({
      id: `catalogs.missing-${name}`,
      promise: `${name} is required`,
      tried: `a catalog without ${name}`,
      bodies: (draft) => [Object.fromEntries(Object.entries(draft).filter(([key]) => key !== name))],
      refusal: { code: 'missing_field', param: name },
    }),
  ),
  {
    id: 'catalogs.bad-id',
    section: '8',
    promise: `an id is at most ${MAX_ID} letters, digits, ., _ and -, and neither . nor ..`,
    tried: `an empty id, . and .., a slash, a space, é, a line break at the end, a colon, braces, NUL, ${MAX_ID + 1} characters, and other types`,
    bodies: (draft) =>
      [
        ...['', '.', '..', 'a/b', 'a b', '\u00e9', 'a\n', 'a:b', '{a}', 'a\0', 'a'.repeat(MAX_ID + 1)],
        ...[1, null, true],
      ].map((id) => ({ ...draft, id })),
    refusal: { code: 'invalid_catalog_id', param: 'id' },
  },
  {
    id: 'catalogs.empty-model',
    promise: 'model has at least one character',
    tried: 'model is ""',
    bodies: (draft) => [{ ...draft, model: '' }],
    refusal: { code: 'invalid_value', param: 'model' },
  },
  {
    id: 'catalogs.bad-model',
    promise: 'a catalog belongs to a served model, named without a revision',
    tried: 'a model that is not served, and a qualified name',
    bodies: (draft) => ['no-such-model', `${draft.model}@r1`].map((model) => ({ ...draft, model })),
    refusal: { code: 'unknown_model', param: 'model' },
  },
  {
    id: 'catalogs.bad-choices',
    promise: 'the rules for choices are those of a decision',
    tried: `no choice, one, a repeated one, an empty one, ${MAX_CHOICES + 1}`,
    bodies: (draft) =>
      [[], ['a'], ['a', 'b', 'a'], ['a', ''], numbered(MAX_CHOICES + 1)].map((choices) => ({ ...draft, choices })),
    refusal: { code: 'invalid_choices', param: 'choices' },
  },
  {
    id: 'catalogs.type-of-choices',
    promise: 'choices is a list of strings',
    tried: 'a string, null, and a list that holds a number',
    bodies: (draft) => ['a', null, ['a', 1]].map((choices) => ({ ...draft, choices })),
    refusal: { code: 'invalid_type', param: 'choices' },
  },
  {
    id: 'catalogs.model-limit-of-choices',
    section: '8',
    promise: 'there are at most as many choices as the model’s limit',
    tried: 'one choice more than limits.choices, where that is less than the contract’s',
    bodies: (draft, { limits }) => {
      if (limits.choices >= MAX_CHOICES) throw new Skipped('the model takes as many choices as the contract');
      return [{ ...draft, choices: numbered(limits.choices + 1) }];
    },
    refusal: { code: 'too_many_choices', param: 'choices' },
  },
  {
    id: 'catalogs.long-choice',
    section: '8',
    promise: 'a choice of more tokens than the model’s limit is refused when the catalog is created',
    tried: 'a choice of limits.candidate_tokens + 1 words',
    bodies: (draft, { limits }) => [{ ...draft, choices: ['a', tooLong(limits.candidate_tokens)] }],
    refusal: { code: 'candidate_tokens_exceeded', param: 'choices' },
  },
  {
    id: 'catalogs.bad-version',
    promise: `a version has at most ${MAX_VERSION} characters`,
    tried: `${MAX_VERSION + 1} characters`,
    bodies: (draft) => [{ ...draft, version: 'v'.repeat(MAX_VERSION + 1) }],
    refusal: { code: 'invalid_value', param: 'version' },
  },
  {
    id: 'catalogs.type-of-version',
    promise: 'version is a string; nothing is converted',
    tried: 'version is null, 1, true, [] and {}',
    bodies: (draft) => [null, 1, true, [], {}].map((version) => ({ ...draft, version })),
    refusal: { code: 'invalid_type', param: 'version' },
  },
  {
    id: 'catalogs.bad-visibility',
    promise: 'private is the only visibility',
    tried: 'public and an empty one',
    bodies: (draft) => ['public', ''].map((visibility) => ({ ...draft, visibility })),
    refusal: { code: 'invalid_value', param: 'visibility' },
  },
  {
    id: 'catalogs.unknown-property',
    promise: 'a property that the contract does not have is refused',
    tried: 'owner beside a valid catalog',
    bodies: (draft) => [{ ...draft, owner: 'me' }],
    refusal: { code: 'unknown_field', param: 'owner' },
  },
];

/** The checks of the rules that a catalog must follow. */
export const CATALOG_REQUEST_CHECKS: readonly Check[] = [
  ...ROWS.map(
    ({ id, section = '2.7', promise, tried, bodies, refusal }): Check => ({
      id,
      section,
      promise,
      tried,
      needs: ['key'],
      async run(kit) {
        const model = await kit.model();
        const draft = { id: kit.newCatalogId(), model: model.id, choices: ['billing', 'shipping'] };
        for (const body of bodies(draft, model)) {
          refuses(await kit.catalog('POST', body), { status: 400, ...refusal });
        }
        hasStatus(await kit.catalog('GET', draft.id), 404);
      },
    }),
  ),
  {
    id: 'catalogs.longest-id',
    section: '8',
    promise: `an id may have ${MAX_ID} characters of every kind that is allowed, and can be read under its own path`,
    tried: 'a catalog with such an id, created and read',
    needs: ['key'],
    async run(kit) {
      const id = `${kit.newCatalogId()}.A_z-${'9'.repeat(MAX_ID)}`.slice(0, MAX_ID);
      try {
        hasStatus(await kit.catalog('POST', { id, model: (await kit.model()).id, choices: ['a', 'b'] }), 201);
        hasStatus(await kit.catalog('GET', id), 200);
      } finally {
        await kit.catalog('DELETE', id).catch(() => undefined);
      }
    },
  },
];

/** The wrong catalogs that a protobuf message can express. */
export async function wrongCatalogs(kit: Kit): Promise<readonly WrongMessage[]> {
  const model = await kit.model();
  const draft = { id: kit.newCatalogId(), model: model.id, choices: ['billing', 'shipping'] };
  const { input } = CatalogService.method.createCatalog;
  return ROWS.flatMap(({ bodies, refusal }) => wrongMessages(input, () => bodies(draft, model), refusal));
}
