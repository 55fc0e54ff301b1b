import test from 'ava';
import { CreateDecisionRequestSchema } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { GetModelRequestSchema, ListModelsResponseSchema } from '../../../gen/umpire/v1/model_service_pb.ts';
import { DomainError } from '../../../src/domain/errors.ts';
import { requiredText } from '../../../src/service/field-rules.ts';
import { compileMessageReader } from '../../../src/wire/rest/message-reader.ts';

const NONE: ReadonlyMap<string, string> = new Map();
const read = compileMessageReader(CreateDecisionRequestSchema, {
  model: requiredText('model'),
  input: requiredText('input'),
});

const faultOf = (body: object, duplicate?: string, bound = NONE): string => {
  try {
    read(body as Record<string, unknown>, duplicate, bound);
  } catch (error) {
    if (error instanceof DomainError) return `${error.reason} ${error.param}`;
    throw error;
  }
  return 'read';
};

test('a body becomes a message', (t) => {
  const message = read({ model: 'm', input: 'i', choices: ['a'] }, undefined, NONE);
  t.like(message, { model: 'm', input: 'i', choices: ['a'], instruction: '', catalog: undefined });
});

const cases: readonly (readonly [
  what: string,
  fault: string,
  body: object,
  duplicate?: string | undefined,
  bound?: ReadonlyMap<string, string>,
])[] = [
  ['an unknown property before one that is doubled', 'UNKNOWN_FIELD x', { x: 1, model: 'm' }, 'model'],
  ['a doubled one before a missing one', 'DUPLICATE_FIELD input', { input: 'i' }, 'input'],
  ['fields in the proto’s order', 'MISSING_FIELD model', { input: 1 }],
  ['presence before type, of each field', 'INVALID_TYPE model', { model: null }],
  ['type before value', 'INVALID_TYPE model', { model: [], input: '' }],
  ['a field without a rule has its type still', 'INVALID_TYPE instruction', { model: 'm', input: 'i', instruction: 1 }],
  ['a list of one wrong item', 'INVALID_TYPE choices', { model: 'm', input: 'i', choices: ['a', 1] }],
  ['a sparse-looking object is no list', 'INVALID_TYPE choices', { model: 'm', input: 'i', choices: { length: 0 } }],
  [
    'the message’s own properties are not the caller’s',
    'UNKNOWN_FIELD $typeName',
    { model: 'm', input: 'i', $typeName: 'x' },
  ],
  [
    'a field that the path gave is not one of the body',
    'UNKNOWN_FIELD model',
    { model: 'm', input: 'i' },
    undefined,
    new Map([['model', 'n']]),
  ],
];

for (const [what, fault, body, duplicate, bound] of cases)
  test(what, (t) => t.is(faultOf(body, duplicate, bound), fault));

test('inherited properties are none', (t) => {
  t.is(faultOf(Object.create({ model: 'm', input: 'i' })), 'MISSING_FIELD model');
});

test('what the path gave is judged like the rest', (t) => {
  const byPath = compileMessageReader(GetModelRequestSchema, { model: requiredText('model') });
  t.like(byPath({}, undefined, new Map([['model', 'm']])), { model: 'm' });
  t.throws(() => byPath({}, undefined, NONE), { message: /model is required/ });
});

test('a request of another kind of field does not compile', (t) => {
  t.throws(() => compileMessageReader(ListModelsResponseSchema, {}), {
    message: /umpire\.v1\.ListModelsResponse\.data/,
  });
});

test('a name is cut before it is sent back', (t) => {
  const error = t.throws<DomainError>(() => read({ ['n'.repeat(5000)]: 1 }, undefined, NONE));
  t.is(error.param?.length, 129);
  t.true(error.message.length < 300);
});
