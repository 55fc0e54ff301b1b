/**
 * gRPC server reflection, `v1` and the older `v1alpha` that many tools still ask for: the descriptors of the services
 * that are served.
 */
import { createRegistry, type DescFile, type DescService, type Registry, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import type {
  ServerReflectionRequest,
  ServerReflectionResponse,
} from '../../../gen/grpc/reflection/v1/reflection_pb.ts';

type Answer = ServerReflectionResponse['messageResponse'];

/**
 * Answers the requests of one reflection stream, one by one, each after `turn`. Both versions have the same messages.
 */
export type Reflector = (
  requests: AsyncIterable<ServerReflectionRequest>,
  turn: () => Promise<void>,
) => AsyncIterable<{
  validHost: string;
  originalRequest: ServerReflectionRequest;
  messageResponse: Answer;
}>;

/** Descriptors by type name and by file name. */
interface Served {
  readonly registry: Registry;
  readonly files: ReadonlyMap<string, DescFile>;
  /** Each file with all that it imports, as it is sent. */
  readonly bytes: Map<DescFile, readonly Uint8Array[]>;
}

/** A reflector of services. */
export function createReflector(services: readonly DescService[]): Reflector {
  const files = withImports(services.map((service) => service.file));
  const served: Served = {
    registry: createRegistry(...files),
    files: new Map(files.map((file) => [file.proto.name, file])),
    bytes: new Map(),
  };
  const names = services.map((service) => ({ name: service.typeName }));
  return async function* reflect(requests, turn) {
    for await (const request of requests) {
      await turn();
      yield { validHost: request.host, originalRequest: request, messageResponse: answer(request, served, names) };
    }
  };
}

function answer(
  request: ServerReflectionRequest,
  { registry, files, bytes }: Served,
  names: readonly { name: string }[],
): Answer {
  const { messageRequest } = request;
  switch (messageRequest.case) {
    case 'listServices':
      return { case: 'listServicesResponse', value: { service: [...names] } } as Answer;
    case 'fileByFilename':
      return fileAnswer(files.get(messageRequest.value), bytes);
    case 'fileContainingSymbol':
      return fileAnswer(fileOfSymbol(registry, messageRequest.value), bytes);
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = messageRequest.value;
      const extended = registry.getMessage(containingType);
      return fileAnswer(extended && registry.getExtensionFor(extended, extensionNumber)?.file, bytes);
    }
    case 'allExtensionNumbersOfType':
    case undefined:
      return failure(Code.Unimplemented, 'not supported');
  }
}

/** A symbol is a type, a service, or a member of one: `umpire.v1.DecisionService.CreateDecision`. */
function fileOfSymbol(registry: Registry, symbol: string): DescFile | undefined {
  const found = registry.get(symbol);
  if (found !== undefined) return found.file;
  const parent = symbol.slice(0, Math.max(0, symbol.lastIndexOf('.')));
  return parent === '' ? undefined : registry.get(parent)?.file;
}

function fileAnswer(file: DescFile | undefined, bytes: Served['bytes']): Answer {
  if (file === undefined) return failure(Code.NotFound, 'not found');
  let fileDescriptorProto = bytes.get(file);
  if (fileDescriptorProto === undefined) {
    fileDescriptorProto = withImports([file]).map((each) => toBinary(FileDescriptorProtoSchema, each.proto));
    bytes.set(file, fileDescriptorProto);
  }
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } } as Answer;
}

function failure(code: Code, errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode: code as number, errorMessage } } as Answer;
}

/** The files with all that they import, each once, imports first. */
function withImports(files: readonly DescFile[]): readonly DescFile[] {
  const ordered = new Set<DescFile>();
  const visit = (file: DescFile): void => {
    if (ordered.has(file)) return;
    for (const dependency of file.dependencies) visit(dependency);
    ordered.add(file);
  };
  for (const file of files) visit(file);
  return [...ordered];
}
