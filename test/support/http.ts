/**
 * Callers of a service: one that keeps the rules of HTTP, also behind TLS, one that writes bytes as it likes, one over
 * HTTP/2, and RPCs written byte by byte, for what no client would send.
 */
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { type Agent, request as requestTls, Agent as TlsAgent } from 'node:https';
import { connect as connectSocket, type Socket } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import { type Answer, VALID_BODY } from './answers.ts';

export interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** The address to send from. */
  readonly localAddress?: string;
}

const JSON_TYPE = { 'content-type': 'application/json' };

/**
 * Sends a request with node:http, or over TLS with the agent that is given; a body goes with its length and, unless the
 * headers say otherwise, as JSON.
 */
export function send(
  port: number,
  { method, path = '/v1/decisions', headers = {}, body, host = '127.0.0.1', localAddress }: Call,
  agent?: Agent,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = (agent === undefined ? request : requestTls)(
      {
        ...(agent === undefined ? {} : { agent }),
        port,
        host,
        ...(localAddress === undefined ? {} : { localAddress }),
        path,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          ...(body === undefined ? {} : { ...JSON_TYPE, 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Posts a decision as JSON. */
export function decide(port: number, body: unknown, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
  return send(port, { body: JSON.stringify(body), headers });
}

/** An HTTP/2 session with prior knowledge. */
export function openSession(port: number): ClientHttp2Session {
  // The client's own default of 10 MB would end a session that sends a body of that size.
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 64 });
  session.on('error', () => {});
  return session;
}

/** What came back on a stream. */
export interface StreamAnswer extends Answer {
  readonly body: Buffer;
  /** Trailers, or the headers of an answer that has nothing else. */
  readonly trailers: IncomingHttpHeaders;
}

/** Sends a request on a session. `end`: whether it ends after the body. */
export function sendH2(
  session: ClientHttp2Session,
  { method, path = '/v1/decisions', headers = {}, body, end = true }: Call & { readonly end?: boolean },
): Promise<StreamAnswer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(
      {
        ':method': method ?? (body === undefined ? 'GET' : 'POST'),
        ':path': path,
        ...(body === undefined ? {} : JSON_TYPE),
        ...headers,
      },
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
    stream.on('end', () => {
      const bytes = Buffer.concat(chunks);
      resolve({
        status: received[':status'] ?? 0,
        headers: received,
        trailers: trailers ?? received,
        body: bytes,
        text: bytes.toString(),
      });
    });
    if (body !== undefined) stream.write(body);
    if (end) stream.end();
  });
}

/**
 * Writes bytes on a socket of its own and resolves with all that comes back until the server closes, or until a moment
 * after the awaited number of answers, in which one too many would show.
 */
export function sendRaw(
  port: number,
  parts: string | Uint8Array | readonly (string | Uint8Array)[],
  {
    answers = 1,
    timeout = 10_000,
    connect: connectTo = () => connectSocket(port, '127.0.0.1'),
    endAfter,
  }: RawOptions = {},
): Promise<RawAnswers> {
  return new Promise((resolve, reject) => {
    const socket = connectTo();
    const chunks: Buffer[] = [];
    let timer = setTimeout(finish, timeout);
    let closed = false;
    function finish(): void {
      clearTimeout(timer);
      socket.destroy();
      const bytes = Buffer.concat(chunks);
      resolve({ bytes, answers: parseAnswers(bytes), closed });
    }
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (parseAnswers(Buffer.concat(chunks)).length < answers) return;
      clearTimeout(timer);
      timer = setTimeout(finish, SETTLING_TIME);
    });
    socket.on('end', () => {
      closed = true;
      finish();
    });
    socket.on('error', (error) => (chunks.length > 0 ? finish() : reject(error)));
    for (const part of [parts].flat() as (string | Uint8Array)[]) socket.write(part);
    if (endAfter !== undefined) setTimeout(() => socket.end(), endAfter).unref();
  });
}

/** Milliseconds in which an answer that should not be there would follow the last awaited one. */
const SETTLING_TIME = 100;

export interface RawOptions {
  /** How many are awaited; default 1. */
  readonly answers?: number;
  /** Milliseconds after which what has come is all. */
  readonly timeout?: number;
  readonly connect?: () => Socket;
  /**
   * Milliseconds after which the sending side is closed, for requests that may promise more than they hold. Callers
   * that close have left.
   */
  readonly endAfter?: number;
}

export interface RawAnswers {
  readonly bytes: Buffer;
  readonly answers: readonly Answer[];
  /** Whether the server closed the connection. */
  readonly closed: boolean;
}

/** HTTP/1.1 responses in a row; those with a Content-Length, which all of Umpire's have. 100 Continue is left out. */
export function parseAnswers(bytes: Buffer): readonly Answer[] {
  const answers: Answer[] = [];
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return answers;
    const [first = '', ...lines] = rest.subarray(0, end).toString().split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const length = Number(headers['content-length'] ?? 0);
    const status = Number(first.split(' ')[1]);
    if (rest.length < end + 4 + length) return answers;
    const text = rest.subarray(end + 4, end + 4 + length).toString();
    if (status !== 100) answers.push({ status, headers, text });
    rest = rest.subarray(end + 4 + length);
  }
}

/** The path of the call that decides. */
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

/** A call as it is written byte by byte. */
export interface RawRpcCall {
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array;
  /** Whether the request ends after the body. */
  readonly end?: boolean;
}

/** Sends a gRPC request on a session; `headers` replace the usual ones, undefined leaves one out. */
export const sendGrpc = (
  session: ClientHttp2Session,
  { path = DECIDE, headers = {}, body = frame(validMessage), end = true }: RawRpcCall = {},
): Promise<StreamAnswer> =>
  sendH2(session, { path, body, end, headers: { 'content-type': 'application/grpc', te: 'trailers', ...headers } });

/** A decision's body, and the header of its length. */
export const text = JSON.stringify(VALID_BODY);
/** A decision with more headers, each with its line's end. */
export const post = (headers: string, body = text): string =>
  `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${headers}\r\n${body}`;
export const length = `Content-Length: ${text.length}\r\n`;
/** A request without a body. */
export const get = (target: string, version = 'HTTP/1.1', headers = 'Host: a\r\n'): string =>
  `GET ${target} ${version}\r\n${headers}\r\n`;

export interface TlsCaller {
  /** Sends a request; a body goes as JSON unless the headers say otherwise. */
  send(call: Omit<Call, 'host'>): Promise<Answer>;
  close(): void;
}

/** One for a port of 127.0.0.1 whose certificate is trusted. */
export function openTls(port: number, trusted: string): TlsCaller {
  const agent = new TlsAgent({ keepAlive: true, ca: trusted });
  return {
    send: (call) => send(port, call, agent),
    close: () => agent.destroy(),
  };
}
