import type { DescMessage } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { DecisionOutputSchema, DecisionSchema } from '../../../gen/umpire/v1/decision_service_pb.ts';
import {
  GetModelResponseSchema,
  ListModelsResponseSchema,
  ModelSchema,
  ModelStatus,
} from '../../../gen/umpire/v1/model_service_pb.ts';
import { MessageWriter } from '../../../src/wire/rest/message-json.ts';

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
