/**
 * What of HTTP/2 is not left to Node's compatibility layer: the answers that it would give by itself, when streams
 * begin, and how many may at once.
 */
import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import {
  constants,
  type Http2SecureServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Holdings } from '../holdings/holdings.ts';
import type { Connection } from '../holdings/open-request.ts';
import { MAX_STREAMS, MAX_STREAMS_OF_A_TURN } from '../http/bounds.ts';
import { type HttpRequest, type HttpResponse, isHttp2 } from '../http/messages.ts';
import { presentTurn, takeTurn, type Work } from '../http/turns.ts';
import type { RawAnswers } from './raw-answer.ts';

/** With what a session is ended that makes too much work: Node takes a code in place of an error. */
const CALM = constants.NGHTTP2_ENHANCE_YOUR_CALM as unknown as Error;

/** What HTTP/2 servers need beside a dispatcher. */
export interface OddHttp2 {
  readonly dispatch: RequestListener;
  readonly raw: RawAnswers;
  readonly onSession: (session: ServerHttp2Session) => void;
  readonly holdings: Holdings;
}

/**
 * What Node would answer by itself: a CONNECT and an unknown Expect without a body; a stream that its peer took back
 * before it was looked at with whatever its compatibility layer does with a stream that is gone, which for one with
 * `Expect: 100-continue` is to throw.
 */
export function answerOddHttp2(
  server: Http2Server | Http2SecureServer,
  { dispatch, raw, onSession, holdings }: OddHttp2,
): void {
  /** The session of the stream that is about to be told of: a stream that is gone does not know it. */
  let session: ServerHttp2Session | undefined;
  server.on('session', (begun: ServerHttp2Session) => {
    begun.prependListener('stream', () => {
      session = begun;
    });
    onSession(begun);
    const frame = (): void => {
      const connection = holdings.connections.ofSession(begun);
      if (connection !== undefined) countFrame(connection, begun, holdings);
    };
    begun.on('ping', frame).on('remoteSettings', frame);
  });
  server.on('connect', (request: HttpRequest, response: unknown) => {
    // A secure server also emits this for HTTP/1.1, with a bare socket.
    if (isHttp2(request)) dispatch(request, response as HttpResponse);
    else raw.connect(request, response as Duplex);
  });
  server.on('checkContinue', dispatch as never);
  server.on('checkExpectation', dispatch as never);
  const [compatibility] = server.listeners('stream') as ((...args: unknown[]) => void)[];
  if (compatibility === undefined) throw new Error('this Node has no compatibility layer where it was');
  server.removeAllListeners('stream');
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, ...rest: unknown[]) => {
    // Why it is gone when its turn comes is still to be told, and to nobody would end the process.
    stream.on('error', () => {});
    const connection = holdings.connections.ofSession(session);
    if (connection !== undefined && makesTooMuch(connection)) {
      session?.destroy(CALM);
      holdings.reset(connection, headers);
      return;
    }
    const work = (): ReturnType<Work> => {
      if (!stream.destroyed) {
        beginLate(stream, () => compatibility.call(server, stream, headers, ...rest));
        return { requests: 1, more: false };
      }
      if (connection !== undefined) holdings.reset(connection, headers);
      return { requests: 0, more: false };
    };
    if (connection === undefined) work();
    else takeTurn(holdings.lineOf(connection, headers), work);
  });
}

/** Begins with a stream that may have had its turn after its end, which Node tells once: a call without a message. */
function beginLate(stream: ServerHttp2Stream, begin: () => void): void {
  const told = stream.readableEnded ? stream.listeners('end') : undefined;
  begin();
  if (told === undefined) return;
  for (const listener of stream.listeners('end')) if (!told.includes(listener)) listener.call(stream);
}

/** Counts a frame that wants an answer and belongs to no request: hundreds of them in a turn only make work. */
function countFrame(connection: Connection, session: ServerHttp2Session, holdings: Holdings): void {
  const tooMuch = makesTooMuch(connection);
  if (connection.streams > MAX_STREAMS) holdings.reset(connection);
  if (tooMuch) session.destroy(CALM);
}

/** Counts a stream or such a frame; whether there are more in this turn of the event loop than can be meant well. */
function makesTooMuch(connection: Connection): boolean {
  const turn = presentTurn();
  if (connection.turn !== turn) {
    connection.turn = turn;
    connection.streams = 0;
  }
  connection.streams += 1;
  return connection.streams > MAX_STREAMS_OF_A_TURN;
}
