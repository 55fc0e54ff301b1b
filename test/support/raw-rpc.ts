/** RPCs written byte by byte, for what no client would send. */
import type { ClientHttp2Session, IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import { VALID_BODY } from './answers.ts';

export const DECIDE = '/umpire.v1.DecisionService/CreateDecision';

/** A valid request as a protobuf. */
export const validMessage: Uint8Array = toBinary(
  CreateDecisionRequestSchema,
  create(CreateDecisionRequestSchema, { ...VALID_BODY, choices: [...VALID_BODY.choices] }),
);

/** A gRPC frame: a flag, a length of four bytes, the message. `length` may lie. */
export function frame(message: Uint8Array, { flags = 0, length = message.length } = {}): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

/** All that came back on one stream. */
export interface RawRpcAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Trailers, or the headers of an answer that has nothing else. */
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Sends a gRPC request on a session; `headers` replace the usual ones, undefined leaves one out. */
export function sendGrpc(
  session: ClientHttp2Session,
  { path = DECIDE, headers = {}, body = frame(validMessage) as Uint8Array, end = true }: RawRpcCall = {},
): Promise<RawRpcAnswer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(
      { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...headers },
      { endStream: false },
    );
    const chunks: Buffer[] = [];
    let received: IncomingHttpHeaders & { ':status'?: number } = {};
    let trailers: IncomingHttpHeaders | undefined;
    stream.on('response', (got) => {
      received = got as typeof received;
    });
    stream.on('trailers', (got) => {
      trailers = got as IncomingHttpHeaders;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('end', () =>
      resolve({
        status: received[':status'] ?? 0,
        headers: received,
        trailers: trailers ?? received,
        body: Buffer.concat(chunks),
      }),
    );
    stream.write(body);
    if (end) stream.end();
  });
}

export interface RawRpcCall {
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array;
  /** Whether the request ends after the body. */
  readonly end?: boolean;
}
