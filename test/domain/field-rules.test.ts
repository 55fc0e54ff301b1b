/** The rules that the protos state of requests' fields, as the checks that are compiled from them. */
import { create, createFileRegistry, type DescMessage, setExtension } from '@bufbuild/protobuf';
import {
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MessageOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';
import test from 'ava';
import { FieldRulesSchema, field, MessageRulesSchema, message } from '../../gen/buf/validate/validate_pb.ts';
import {
  CatalogSchema,
  CreateCatalogRequestSchema,
  DeleteCatalogRequestSchema,
  GetCatalogRequestSchema,
} from '../../gen/umpire/v1/catalog_service_pb.ts';
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import { choicesFault, draftFault, isCatalogId } from '../../src/domain/catalogs.ts';
import type { DomainError } from '../../src/domain/errors.ts';
import { constraintsOf, fieldRules } from '../../src/domain/field-rules.ts';

const has = (...names: readonly string[]) => ({ has: (name: string) => names.includes(name) });
const decision = fieldRules(CreateDecisionRequestSchema);
const catalog = fieldRules(CreateCatalogRequestSchema);
const faultIn = (rules: typeof decision, name: string, value: unknown): DomainError | undefined =>
  rules[name]?.value?.(value as never);

test('a required field must be there, another need not', (t) => {
  for (const [rules, name] of [
    [decision, 'model'],
    [catalog, 'choices'],
  ] as const) {
    t.like(rules[name]?.presence?.(has()), { reason: 'MISSING_FIELD', param: name, message: `${name} is required` });
    t.is(rules[name]?.presence?.(has(name)), undefined);
  }
  t.is(catalog.version?.presence, undefined);
  t.is(decision.catalog?.presence, undefined);
});

test('of fields that exclude each other one must be there', (t) => {
  const message = 'send exactly one of choices and catalog';
  for (const names of [[], ['choices', 'catalog']]) {
    t.like(decision.choices?.presence?.(has(...names)), { reason: 'CHOICES_OR_CATALOG', param: 'choices', message });
  }
  for (const name of ['choices', 'catalog']) t.is(decision.choices?.presence?.(has(name)), undefined);
});

for (const [what, text, message] of [
  ['empty', '', 'must not be empty'],
  ['a space', ' ', undefined],
  ['a pair of surrogates', '\ud83d\ude00', undefined],
  ['a high surrogate alone', 'a\ud83d', 'holds a lone surrogate, which is not a Unicode character'],
  ['a low surrogate alone', '\ude00a', 'holds a lone surrogate, which is not a Unicode character'],
  ['a pair the wrong way round', '\ude00\ud83d', 'holds a lone surrogate, which is not a Unicode character'],
  ['NUL', '\0', undefined],
] as const) {
  test(`a text that is ${what}`, (t) => {
    for (const name of ['model', 'input', 'instruction', 'catalog']) {
      const fault = faultIn(decision, name, text);
      if (message === undefined) t.is(fault, undefined);
      else t.like(fault, { reason: 'INVALID_VALUE', param: name, message: `${name} ${message}` });
    }
  });
}

const many = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

for (const [title, choices] of Object.entries({
  two: ['a', 'b'],
  'as many as there may be': many(300),
  'what an object would have anyway': ['__proto__', 'constructor', 'toString'],
  'white space and digits': [' ', '  ', '\n', '10', '010'],
  'one word composed and decomposed': ['é', 'e\u0301'],
  emoji: ['🟢', '🔴'],
})) {
  test(`choices that are fine: ${title}`, (t) => {
    t.is(choicesFault(choices), undefined);
    t.is(faultIn(decision, 'choices', choices), undefined);
  });
}

for (const [title, choices, message] of [
  ['none', [], 'choices must hold 2 to 300 items, not 0'],
  ['one', ['a'], "choices must hold 2 to 300 items, not 1; add its opposite, such as 'none of these'"],
  ['too many', many(301), 'choices must hold 2 to 300 items, not 301'],
  ['an empty one', ['a', ''], 'choices[1] is empty'],
  ['one twice', ['a', 'b', 'a'], 'choices[2] repeats choices[0]'],
  ['a lone surrogate', ['a', 'b\ud800'], 'choices[1] is not well-formed text: it holds a lone surrogate'],
] as const) {
  test(`choices that are refused: ${title}`, (t) => {
    const refusal = { reason: 'INVALID_CHOICES', param: 'choices', message } as const;
    t.like(choicesFault(choices), refusal);
    t.like(faultIn(decision, 'choices', choices), refusal);
    const counted = choices.length < 2 || choices.length > 300;
    for (const rules of [decision, catalog])
      t.is(rules.choices?.items?.(choices.length)?.message, counted ? message : undefined);
  });
}

test('ids that are fine', (t) => {
  for (const id of ['a', 'A', '0', '-', '_', '...', '.a', 'a.b_c-D', 'x'.repeat(128)]) t.true(isCatalogId(id), id);
});

test('ids that are not', (t) => {
  const odd = ['a b', 'a/b', 'é', 'a\n', '\na', 'a:b', '{a}', '{', 'a\0', 'а', '%2e', 'a\u2028', '１', '\ud800'];
  const message = "id must be 1 to 128 letters, digits, '.', '_' or '-', and neither '.' nor '..'";
  for (const id of ['', '.', '..', 'x'.repeat(129), ...odd]) {
    t.like(faultIn(catalog, 'id', id), { reason: 'INVALID_CATALOG_ID', param: 'id', message }, JSON.stringify(id));
    t.false(isCatalogId(id));
  }
});

test('an id is the same wherever it stands; what it is not is not found, and of another type no id', (t) => {
  for (const desc of [GetCatalogRequestSchema, DeleteCatalogRequestSchema]) {
    t.deepEqual(constraintsOf(desc.field.id), constraintsOf(CreateCatalogRequestSchema.field.id));
    const rules = fieldRules(desc);
    t.like(faultIn(rules, 'id', '..'), { reason: 'CATALOG_NOT_FOUND', message: 'a catalog of this id does not exist' });
    t.is(rules.id?.wrongType, undefined);
  }
  t.deepEqual(
    { required: true, ...constraintsOf(CatalogSchema.field.id) },
    constraintsOf(CreateCatalogRequestSchema.field.id),
  );
  t.is(catalog.id?.wrongType, 'INVALID_CATALOG_ID');
});

test('versions', (t) => {
  for (const fine of ['', '1', 'x'.repeat(128), '🟢'.repeat(128), 'v 1\n'])
    t.is(faultIn(catalog, 'version', fine), undefined);
  for (const wrong of [
    'x'.repeat(129),
    '🟢'.repeat(129),
    `${'🟢'.repeat(100)}${'x'.repeat(29)}`,
    'x'.repeat(1_000_000),
  ]) {
    t.like(faultIn(catalog, 'version', wrong), {
      reason: 'INVALID_VALUE',
      param: 'version',
      message: 'version must be at most 128 characters',
    });
  }
  t.like(faultIn(catalog, 'version', '\udc00'), { reason: 'INVALID_VALUE', param: 'version' });
});

test('visibility', (t) => {
  t.is(faultIn(catalog, 'visibility', 'private'), undefined);
  const message = "visibility must be 'private'";
  for (const wrong of ['', 'public', 'Private', 'private '])
    t.like(faultIn(catalog, 'visibility', wrong), { reason: 'INVALID_VALUE', param: 'visibility', message });
});

test('of several faults of a draft the first field is named', (t) => {
  const wrong = { id: '..', model: 'm', choices: [], version: 'x'.repeat(129), visibility: 'public' };
  t.is(draftFault(wrong)?.param, 'id');
  t.is(draftFault({ ...wrong, id: 'a' })?.param, 'choices');
  t.is(draftFault({ ...wrong, id: 'a', choices: ['a', 'b'] })?.param, 'version');
  t.is(draftFault({ ...wrong, id: 'a', choices: ['a', 'b'], version: '1' })?.param, 'visibility');
  t.is(draftFault({ id: 'a', model: 'm', choices: ['a', 'b'] }), undefined);
});

/** A request of a text `a` and a list `b` with these constraints. */
function request(a: object, b: object, whole?: object): DescMessage {
  const options = (constraints: object) => {
    const made = create(FieldOptionsSchema);
    setExtension(made, field, create(FieldRulesSchema, constraints));
    return made;
  };
  const messageOptions = create(MessageOptionsSchema);
  if (whole !== undefined) setExtension(messageOptions, message, create(MessageRulesSchema, whole));
  const file = create(FileDescriptorProtoSchema, {
    name: 'test.proto',
    package: 'test',
    syntax: 'proto3',
    messageType: [
      {
        name: 'Request',
        field: [
          { name: 'a', jsonName: 'a', number: 1, type: Type.STRING, label: Label.OPTIONAL, options: options(a) },
          { name: 'b', jsonName: 'b', number: 2, type: Type.STRING, label: Label.REPEATED, options: options(b) },
        ],
        options: messageOptions,
      },
    ],
  });
  return createFileRegistry(file, () => undefined).getMessage('test.Request') as DescMessage;
}

const text = (rules: object) => ({ type: { case: 'string', value: rules } });
const list = (rules: object) => ({ type: { case: 'repeated', value: rules } });

test('a length may be any', (t) => {
  const rules = fieldRules(request(text({ minLen: 3n }), list({ items: { type: { case: 'string', value: {} } } })));
  t.is(faultIn(rules, 'a', '🟢🟢')?.message, 'a must be at least 3 characters');
  t.is(faultIn(rules, 'a', '🟢🟢🟢'), undefined);
  t.is(faultIn(rules, 'b', ['', '']), undefined);
});

for (const [what, desc, problem] of [
  ['a prefix', request(text({ prefix: 'x' }), {}), /^test\.Request\.a: .*'prefix'/],
  ['a pattern without words', request(text({ pattern: '^x$' }), {}), /^test\.Request\.a: .*message/],
  ['an expression', request({ celExpression: ['this != ""'] }, {}), /^test\.Request\.a: .*'celExpression'/],
  ['longer items', request({}, list({ items: text({ minLen: 2n }) })), /^test\.Request\.b: .*'minLen'/],
  ['items that match', request({}, list({ items: text({ pattern: 'x' }) })), /^test\.Request\.b: .*'pattern'/],
  ['fields that may all be absent', request({}, {}, { oneof: [{ fields: ['a', 'b'] }] }), /^test\.Request: .*oneof/],
  ['an expression of the whole', request({}, {}, { celExpression: ['true'] }), /^test\.Request: .*oneof/],
] as const) {
  test(`a constraint without a check stops the start: ${what}`, (t) => {
    t.throws(() => fieldRules(desc), { message: problem });
  });
}
