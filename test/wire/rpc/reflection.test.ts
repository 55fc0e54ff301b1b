/**
 * Server reflection, where it is switched on: a client finds every service and can build its own view of the protos.
 */
import { create, createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import test from 'ava';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as Alpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
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
