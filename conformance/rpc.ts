/** gRPC and Connect as the kit speaks them: one message there, one back, by the bytes of the protocols. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { ErrorInfoSchema, RetryInfoSchema } from '../gen/google/rpc/error_details_pb.ts';
import { type Answer, jsonOf, likelyCause, show } from './answer.ts';
import { matches, same } from './expect.ts';
import { bearer, type Kit } from './kit.ts';
import { BrokenPromise } from './outcome.ts';

/** A method and its messages. */
export interface Rpc<I extends DescMessage, O extends DescMessage> {
  readonly path: string;
  readonly input: I;
  readonly output: O;
}

/** A method by its descriptor. */
export function rpcOf<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>): Rpc<I, O> {
  const { name, parent, input, output } = method;
  return { path: `/${parent.typeName}/${name}`, input, output };
}

/** What goes with a call. */
export interface RpcTerms {
  readonly key?: string | undefined;
  /** Metadata of the call, as headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes instead of the message's own frame. */
  readonly frame?: Uint8Array;
  /** As with any call. */
  readonly once?: boolean;
}

/** An error as both protocols carry it. */
export interface RpcRefusal {
  /** The number of the status in gRPC. */
  readonly code: number;
  readonly reason: string;
  /** `metadata.param` of ErrorInfo. */
  readonly param?: string;
}

/** The names under which Connect knows gRPC's codes. */
const CONNECT_CODES: Readonly<Record<number, string>> = {
  3: 'invalid_argument',
  4: 'deadline_exceeded',
  5: 'not_found',
  6: 'already_exists',
  12: 'unimplemented',
  16: 'unauthenticated',
};

const HEAD = 5;

/** A message in its gRPC frame: uncompressed, with its length. */
export function frameOf(message: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Makes a unary gRPC call over HTTP/2. */
export function callGrpc<I extends DescMessage, O extends DescMessage>(
  kit: Kit,
  { path, input }: Rpc<I, O>,
  request: MessageInitShape<I>,
  { key, headers = {}, frame = frameOf(toBinary(input, create(input, request))), once = false }: RpcTerms = {},
): Promise<Answer> {
  const grpc = { 'content-type': 'application/grpc', 'content-length': undefined, te: 'trailers' };
  return kit.http2({ path, body: frame, headers: { ...grpc, ...bearer(key), ...headers }, once });
}

/** The message in an answer that must be one. */
export function grpcMessage<O extends DescMessage>(
  answer: Answer,
  { output }: Pick<Rpc<DescMessage, O>, 'output'>,
): MessageShape<O> {
  assertGrpc(answer);
  const { 'grpc-status': status, 'grpc-message': message } = answer.trailers;
  if (status !== '0') throw new BrokenPromise(`expected grpc-status 0, got ${status}: ${message}`);
  const length = answer.body.length >= HEAD ? answer.body.readUInt32BE(1) : -1;
  if (answer.body[0] !== 0 || answer.body.length !== HEAD + length)
    throw new BrokenPromise('the answer is not one frame');
  try {
    return fromBinary(output, answer.body.subarray(HEAD));
  } catch (error) {
    throw new BrokenPromise(`the message cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

/** The answer is that error, with ErrorInfo. */
export function grpcRefuses(answer: Answer, { code, reason, param }: RpcRefusal): void {
  assertGrpc(answer);
  const { trailers } = answer;
  same('grpc-status', trailers['grpc-status'], String(code));
  const details = trailers['grpc-status-details-bin'];
  if (typeof details !== 'string') throw new BrokenPromise('no grpc-status-details-bin: a proxy may drop trailers');
  same('ErrorInfo', errorInfo(statusDetails(Buffer.from(details, 'base64'))), infoOf(reason, param));
}

function assertGrpc(answer: Answer): void {
  const type = String(answer.headers['content-type']);
  if (answer.status === 200 && type.startsWith('application/grpc')) return;
  const cause = likelyCause(answer) || ': what listens there, perhaps a proxy, does not pass gRPC on';
  throw new BrokenPromise(`expected application/grpc, got ${answer.status} ${type}${cause}`);
}

/** Calls by Connect over HTTP/1.1, in JSON (`json` is the message as it is sent) or as a protobuf. */
export function callConnect<I extends DescMessage, O extends DescMessage>(
  kit: Kit,
  { path, input }: Rpc<I, O>,
  request: { readonly json: unknown } | { readonly message: MessageInitShape<I> },
  key?: string,
): Promise<Answer> {
  if ('json' in request) return kit.http1({ path, body: JSON.stringify(request.json), headers: bearer(key) });
  const body = toBinary(input, create(input, request.message));
  return kit.http1({ path, body, headers: { 'content-type': 'application/proto', ...bearer(key) } });
}

/** The answer is that error in Connect's form, under an HTTP status. */
export function connectRefuses(answer: Answer, status: number, { code, reason, param }: RpcRefusal): void {
  same('status', answer.status, status);
  const body = jsonOf(answer);
  same('code', body.code, CONNECT_CODES[code]);
  matches('message', body.message, /./);
  const details = Array.isArray(body.details) ? (body.details as { type: string; value: string }[]) : [];
  const packed = details.map(({ type, value }) => ({ type, bytes: Buffer.from(value, 'base64') }));
  same('ErrorInfo', errorInfo(packed), infoOf(reason, param));
}

interface Packed {
  readonly type: string;
  readonly bytes: Uint8Array;
}

const infoOf = (reason: string, param: string | undefined) => ({
  reason,
  domain: 'umpire',
  metadata: param === undefined ? {} : { param },
});

function errorInfo(details: readonly Packed[]): unknown {
  const found = details.find(({ type }) => type === ErrorInfoSchema.typeName);
  if (found === undefined)
    throw new BrokenPromise(`no ErrorInfo among the details: ${show(details.map(({ type }) => type))}`);
  const { reason, domain, metadata } = fromBinary(ErrorInfoSchema, found.bytes);
  return { reason, domain, metadata: { ...metadata } };
}

/** Seconds in RetryInfo, if there is one. */
export function retrySeconds(answer: Answer): number | undefined {
  const details = statusDetails(Buffer.from(String(answer.trailers['grpc-status-details-bin'] ?? ''), 'base64'));
  const found = details.find(({ type }) => type === RetryInfoSchema.typeName);
  return found === undefined ? undefined : Number(fromBinary(RetryInfoSchema, found.bytes).retryDelay?.seconds);
}

/** `google.rpc.Status`: field 3 repeats `google.protobuf.Any`, whose field 1 is a type's URL and field 2 its bytes. */
function statusDetails(bytes: Uint8Array): readonly Packed[] {
  const details: Packed[] = [];
  const status = new BinaryReader(bytes);
  while (status.pos < status.len) {
    const [field, wire] = status.tag();
    if (field !== 3) {
      status.skip(wire);
      continue;
    }
    const any = new BinaryReader(status.bytes());
    let [type, value]: [string, Uint8Array] = ['', new Uint8Array()];
    while (any.pos < any.len) {
      const [inner, innerWire] = any.tag();
      if (inner === 1) type = any.string();
      else if (inner === 2) value = any.bytes();
      else any.skip(innerWire);
    }
    details.push({ type: type.slice(type.lastIndexOf('/') + 1), bytes: value });
  }
  return details;
}
