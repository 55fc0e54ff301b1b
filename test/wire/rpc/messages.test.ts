/**
 * What clients can learn of messages: with server reflection they find every service and can build their own view of
 * the protos; and which messages are refused before they are decoded.
 */
import { create, createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import test from 'ava';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as Alpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { CreateDecisionRequestSchema } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { DomainError } from '../../../src/domain/errors.ts';
import { MessageScan } from '../../../src/wire/rpc/message-scan.ts';
import { costs, hostileMessages } from '../../support/hostile-bodies.ts';
import { validMessage } from '../../support/http.ts';
import { scriptedService } from '../../support/service.ts';

interface Question {
  readonly case: string;
  readonly value: unknown;
}
interface Answer {
  readonly case: string;
  readonly value: {
    readonly service: readonly { readonly name: string }[];
    readonly fileDescriptorProto: readonly Uint8Array[];
    readonly errorCode: number;
  };
}

test('both versions list the services and hand out their files', async (t) => {
  const service = await scriptedService(t, { UMPIRE_REFLECTION: 'on' });
  for (const version of [ServerReflection, Alpha] as (typeof ServerReflection)[]) {
    const transport = createGrpcTransport({ baseUrl: service.url });
    const ask = async (...questions: readonly Question[]) => {
      const answers: Answer[] = [];
      const requests = (async function* () {
        for (const messageRequest of questions) yield { messageRequest: messageRequest as never };
      })();
      for await (const { messageResponse } of createClient(version, transport).serverReflectionInfo(requests))
        answers.push(messageResponse as unknown as Answer);
      return answers as [Answer, Answer, Answer, Answer, Answer, Answer];
    };
    const [services, bySymbol, byMethod, byName, missing, extension] = await ask(
      { case: 'listServices', value: '' },
      { case: 'fileContainingSymbol', value: 'umpire.v1.DecisionService' },
      { case: 'fileContainingSymbol', value: 'umpire.v1.DecisionService.CreateDecision' },
      { case: 'fileByFilename', value: 'umpire/v1/model_service.proto' },
      { case: 'fileContainingSymbol', value: 'umpire.v1.None' },
      { case: 'allExtensionNumbersOfType', value: 'umpire.v1.Model' },
    );
    t.deepEqual(services.value.service.map(({ name }) => name).toSorted(), [
      'grpc.health.v1.Health',
      'umpire.v1.CatalogService',
      'umpire.v1.DecisionService',
      'umpire.v1.ModelService',
    ]);
    for (const { value } of [bySymbol, byMethod, byName]) {
      const file = value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
      // Building it fails unless every import is there.
      const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
      t.true([...registry.files].some(({ name }) => name.startsWith('umpire/v1/')));
    }
    t.like(missing, { case: 'errorResponse', value: { errorCode: 5 } });
    t.is(extension.case, 'errorResponse');
  }
});

const scan = new MessageScan(CreateDecisionRequestSchema);

const reasonOf = (bytes: Uint8Array): string => {
  try {
    scan.protobuf(bytes);
  } catch (error) {
    if (error instanceof DomainError) return error.reason;
    throw error;
  }
  return 'none';
};

test('a message of a request passes, cut off or not', (t) => {
  for (let length = 0; length <= validMessage.length; length += 1)
    t.is(reasonOf(validMessage.subarray(0, length)), 'none');
});

const many = (...unit: readonly number[]): Buffer => Buffer.alloc(unit.length * 5000, Buffer.from(unit));

test('one of more fields than a request can need does not', (t) => {
  t.is(reasonOf(many(0x78, 0x01)), 'INVALID_MESSAGE');
  t.is(reasonOf(Buffer.concat([validMessage, many(0x0a, 0x00)])), 'INVALID_MESSAGE');
  t.is(reasonOf(many(0x22, 0x01, 0x61)), 'INVALID_CHOICES');
  t.is(reasonOf(many(0x7b)), 'INVALID_MESSAGE');
});

test('what the library would read otherwise than it is written is refused, and hides no fields behind it', (t) => {
  const disguises = {
    'a string with the wire type of 32 bits, whose length the library reads': [0x1d, 0x79, 0x3d, 0x9a, 0x2a, 0x06],
    'a string that is a group': [0x2b, 0x2c],
    'a string as a number': [0x08, 0x01],
  };
  const overlong = {
    'a length beyond 32 bits': [0x7a, 0x80, 0x80, 0x80, 0x80, 0x10],
    'a number of 12 bytes': [0x78, ...Array.from({ length: 11 }, () => 0x80), 0x01],
  };
  for (const [what, bytes] of Object.entries({ ...disguises, ...overlong }))
    t.is(reasonOf(Buffer.concat([Buffer.from(bytes), many(0x78, 0x01)])), 'INVALID_MESSAGE', what);
  for (const [what, bytes] of Object.entries(disguises)) t.is(reasonOf(Buffer.from(bytes)), 'INVALID_MESSAGE', what);
});

// JSON is read by the scanner of bodies, which http/strict-json.test.ts times.
for (const [what, make] of Object.entries(hostileMessages)) {
  test.serial(`a message of ${what} takes no longer than its size`, (t) => {
    const [small, large] = costs(make, (bytes) => scan.protobuf(bytes));
    t.true(large < 16 * 4 * Math.max(small, 0.5), `${small} ms, then ${large} ms`);
    t.true(large < 40, `${large} ms`);
  });
}
