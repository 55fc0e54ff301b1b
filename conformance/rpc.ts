/** Unary calls by gRPC and Connect, made of the protocols' own bytes, without a client library. */
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

/** The path of a method, and its two messages. */
export interface Rpc<I extends DescMessage, O extends DescMessage> {
  readonly path: string;
  readonly input: I;
  readonly output: O;
}

/** The path and the messages of a method, from its descriptor. */
export function rpcOf<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>): Rpc<I, O> {
  const { name, parent, input, output } = method;
  return { path: `/${parent.typeName}/${name}`, input, output };
}

/** What may accompany a call. */
export interface RpcTerms {
  readonly key?: string | undefined;
  /** The call's metadata, as headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes to send in place of the message's own frame. */
  readonly frame?: Uint8Array;
  /** As in `Call`. */
  readonly once?: boolean;
}

/** An error as both protocols carry it. */
export interface RpcRefusal {
  /** The number of the gRPC status. */
  readonly code: number;
  readonly reason: string;
  /** `metadata.param` of ErrorInfo. */
  readonly param?: string;
}

/** Connect's names of gRPC's status codes. */
const CONNECT_CODES: Readonly<Record<number, string>> = {
  3: 'invalid_argument',
  4: 'deadline_exceeded',
  5: 'not_found',
  6: 'already_exists',
  12: 'unimplemented',
  16: 'unauthenticated',
};

/** Bytes before a message in a gRPC frame: a flag for compression, and the length in four bytes. */
const HEAD = 5;

/** A message in a gRPC frame, uncompressed. */
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

/** The message in an answer by gRPC. Throws BrokenPromise if the answer is anything else. */
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

/** Expects an answer by gRPC to be this error, with ErrorInfo. @throws BrokenPromise */
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

/** Makes a unary Connect call over HTTP/1.1, in JSON (`json` is sent as it is) or as a protobuf. */
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

/** Expects an answer by Connect to be this error, under an HTTP status. @throws BrokenPromise */
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

/** The seconds in RetryInfo; undefined if an answer has none. */
export function retrySeconds(answer: Answer): number | undefined {
  const details = statusDetails(Buffer.from(String(answer.trailers['grpc-status-details-bin'] ?? ''), 'base64'));
  const found = details.find(({ type }) => type === RetryInfoSchema.typeName);
  return found === undefined ? undefined : Number(fromBinary(RetryInfoSchema, found.bytes).retryDelay?.seconds);
}

/**
 * The details of a `google.rpc.Status`: its field 3 is a list of `google.protobuf.Any` (1: URL of the type, 2: bytes).
 */
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
