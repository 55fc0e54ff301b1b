/** Messages as JSON: what of a body is refused, and how each kind of field is written. */
import type { DescMessage } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import {
  CreateDecisionRequestSchema,
  CreateDecisionResponseSchema,
  DecisionOutputSchema,
  DecisionSchema,
} from '../../../gen/umpire/v1/decision_service_pb.ts';
import {
  GetModelRequestSchema,
  GetModelResponseSchema,
  ListModelsResponseSchema,
  ModelSchema,
  ModelStatus,
} from '../../../gen/umpire/v1/model_service_pb.ts';
import { DomainError } from '../../../src/domain/errors.ts';
import { MessageReader, MessageWriter } from '../../../src/wire/rest/message-json.ts';

const NONE: ReadonlyMap<string, string> = new Map();
const reader = new MessageReader(CreateDecisionRequestSchema);

const faultOf = (body: string | object, bound = NONE, by: Pick<MessageReader, 'read'> = reader): string => {
  try {
    by.read(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), bound);
  } catch (error) {
    if (error instanceof DomainError) return `${error.reason} ${error.param}`;
    throw error;
  }
  return 'read';
};

test('a body becomes a message', (t) => {
  const message = reader.read(Buffer.from('{"model":"m","input":"i","instruction":"q","choices":["a","b"]}'), NONE);
  t.like(message, { model: 'm', input: 'i', choices: ['a', 'b'], instruction: 'q', catalog: undefined });
});

const TEXTS = { model: 'm', input: 'i', instruction: 'q' };

const CASES: readonly (readonly [what: string, fault: string, body: string | object])[] = [
  ['a doubled one before an unknown one', 'DUPLICATE_FIELD model', '{"model":"m","model":"m","x":1}'],
  ['an unknown property before a doubled one', 'UNKNOWN_FIELD x', '{"model":"m","x":1,"model":"m"}'],
  ['a doubled one before a missing one', 'DUPLICATE_FIELD input', '{"input":"i","input":"i"}'],
  ['fields in the proto’s order', 'MISSING_FIELD model', { input: 1 }],
  ['presence before type, of each field', 'INVALID_TYPE model', { model: null }],
  ['type before value', 'INVALID_TYPE model', { model: 1, input: '' }],
  ['what nests too deep where it stands', 'INVALID_TYPE input', { input: {} }],
  ['a list of one wrong item', 'INVALID_TYPE choices', { ...TEXTS, choices: ['a', 1] }],
  ['a list of lists', 'INVALID_TYPE choices', { ...TEXTS, choices: [['a']] }],
  ['a text where a list belongs', 'INVALID_TYPE choices', { ...TEXTS, choices: 'a' }],
  ['the number of items before they are read', 'INVALID_CHOICES choices', { ...TEXTS, choices: ['\ud800'] }],
  [
    'the message’s own properties are not the caller’s',
    'UNKNOWN_FIELD $typeName',
    { model: 'm', input: 'i', $typeName: 'x' },
  ],
];

for (const [what, fault, body] of CASES) test(what, (t) => t.is(faultOf(body), fault));

test('a field that the path gave is not one of the body, and is judged like the rest', (t) => {
  const byPath = new MessageReader(GetModelRequestSchema, new Set(['model']));
  t.is(faultOf({ model: 'm' }, new Map([['model', 'n']]), byPath), 'UNKNOWN_FIELD model');
  t.like(byPath.read(undefined, new Map([['model', 'm']])), { model: 'm' });
  const found = faultOf('', new Map([['model', '']]), { read: (_, bound) => byPath.read(undefined, bound) });
  t.is(found, 'MODEL_NOT_FOUND model');
});

test('a request of another kind of field does not compile', (t) => {
  t.throws(() => new MessageReader(CreateDecisionResponseSchema), {
    message: /umpire\.v1\.CreateDecisionResponse\.decision/,
  });
});

test('a wrong item is named by its place', (t) => {
  const body = Buffer.from(JSON.stringify({ ...TEXTS, choices: ['a', 1] }));
  t.throws(() => reader.read(body, NONE), {
    message: 'choices must be an array of strings; choices[1] is not a string',
  });
});

/** Bodies as other APIs take them, and what is said of each. */
const ELSEWHERE: readonly (readonly [what: string, body: object, message: RegExp])[] = [
  ['vLLM', { ...TEXTS, choices: ['a', 'b'], guided_choice: ['a'] }, /^guided_choice .* belongs into choices here$/],
  [
    'a list of decisions',
    { model: 'x', questions: [] },
    /^questions .* belongs into instruction here, or send such requests to the bridge/,
  ],
  ['System One', { model: 'x', state: 'y' }, /^state .* belongs into input here, or send .* bridge/],
  ['zero-shot', { inputs: 'y', parameters: {} }, /^inputs .* belongs into input here$/],
  ['chat', { model: 'x', messages: [] }, /^messages .* belongs into input here$/],
  ['an unknown one', { colour: 'red' }, /^colour is not a property of this request, which has .*catalog$/],
  [
    'described choices',
    { ...TEXTS, choices: [{ value: 'billing' }] },
    /choices\[0\] is an object: write one text, such as 'billing: invoices and charges'/,
  ],
];
for (const [what, body, message] of ELSEWHERE) {
  test(`a body for another API says where its parts belong: ${what}`, (t) => {
    t.throws(() => reader.read(Buffer.from(JSON.stringify(body)), NONE), { instanceOf: DomainError, message });
  });
}

test('a name is cut before it is sent back', (t) => {
  const error = t.throws<DomainError>(() => reader.read(Buffer.from(`{"${'n'.repeat(5000)}":1}`), NONE));
  t.is(error.param?.length, 129);
  t.true(error.message.length < 300);
});

function write(desc: DescMessage, message: object): string {
  return new MessageWriter(desc).write(message);
}

test('names as in the proto, every field, enum values in lower case', (t) => {
  t.is(
    write(ModelSchema, {
      id: 'm',
      object: 'model',
      ownedBy: 'umpire',
      status: ModelStatus.UNAVAILABLE,
      limits: { inputTokens: 1 },
    }),
    '{"id":"m","object":"model","owned_by":"umpire","status":"unavailable","limits":{"input_tokens":1,"candidate_tokens":0,"choices":0}}',
  );
});

test('what is not set is written as its zero value, a message that is not set as null', (t) => {
  t.is(write(ListModelsResponseSchema, {}), '{"object":"","data":[]}');
  t.is(write(GetModelResponseSchema, {}), '{"model":null}');
  t.deepEqual(JSON.parse(write(DecisionSchema, { id: 'dec_1' })), {
    id: 'dec_1',
    object: '',
    model: '',
    output: null,
    usage: null,
  });
});

test('strings are JSON’s, whatever is in them', (t) => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      (id) => (JSON.parse(write(ModelSchema, { id })) as { id: string }).id === id,
    ),
    { numRuns: 500 },
  );
  t.pass();
});

test('a map of any number of probabilities under any names is read back as it was', (t) => {
  const names = fc.uniqueArray(
    fc.oneof(fc.string({ unit: 'binary', maxLength: 6 }), fc.constantFrom('__proto__', '10', '9', 'constructor')),
    { minLength: 1, maxLength: 80 },
  );
  fc.assert(
    fc.property(
      names,
      fc.array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: 80, maxLength: 80 }),
      (keys, units) => {
        const probabilities = Object.fromEntries(keys.map((key, index) => [key, (units[index] as number) / 1e6]));
        const read = JSON.parse(write(DecisionOutputSchema, { choice: 'x', confidence: 0.5, probabilities })) as {
          probabilities: Record<string, number>;
        };
        return (
          Object.keys(read.probabilities).length === keys.length &&
          keys.every(
            (key, index) =>
              Object.getOwnPropertyDescriptor(read.probabilities, key)?.value === (units[index] as number) / 1e6,
          )
        );
      },
    ),
    { numRuns: 300 },
  );
  t.pass();
});
