/**
 * One port for everything: HTTP/1.1 (REST, Connect) and HTTP/2 (gRPC, Connect, REST), in cleartext by the first bytes
 * of a connection, with a certificate by ALPN.
 */
import type { RequestListener } from 'node:http';
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  type ServerHttp2Session,
} from 'node:http2';
import { createServer as createNetServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { LOCAL_PEER } from '../../domain/client-address.ts';
import type { Logger } from '../../logger.ts';
import type { Dispatch } from '../dispatch.ts';
import type { Holdings } from '../holdings/holdings.ts';
import { HEADERS_TIMEOUT, TCP_KEEP_ALIVE } from '../http/byte-collector.ts';
import { isHttp2 } from '../http/messages.ts';
import type { Line } from '../http/turns.ts';
import { createHttp1Server, HTTP1_OPTIONS, listen, type Place } from './http1-server.ts';
import { createSessionTurns, HTTP2_OPTIONS, SessionWatch } from './http2-sessions.ts';
import { answerOddHttp2, type OddHttp2 } from './odd-http2.ts';
import { Pipelines } from './pipelines.ts';
import { createRawAnswers } from './raw-answer.ts';
import { sniff } from './sniff.ts';

/** A certificate chain and its private key, as PEM texts. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** What a listener is made of. */
export interface ListenerOptions {
  readonly dispatch: Dispatch;
  readonly logger: Logger;
  /** Counts connections, and says which of them may stay. */
  readonly holdings: Holdings;
  /** Serve TLS with this certificate; cleartext if undefined. */
  readonly tls: TlsFiles | undefined;
}

/** The port that callers connect to, from `listen` to `close`. */
export interface Listener {
  /** Resolves with the place once connections are accepted. @throws the system's error if it cannot be had. */
  listen(place: Place): Promise<Place>;
  /** Uses a new certificate for connections from now on. @throws Error if it is not valid; the old one stays. */
  setCertificate(tls: TlsFiles): void;
  /** From now on every connection serves one more request, and its peer is told with the response. */
  startLeaving(): void;
  /**
   * Accepts nothing more and resolves when every connection has ended; those that have not after `grace`
   * milliseconds are cut.
   */
  close(grace: number): Promise<void>;
  /** Closes every connection that has no request in progress. */
  closeIdle(): void;
}

/** Milliseconds that a connection which was accepted last has for its first request, which may be on the way. */
const FIRST_REQUEST_TIME = 100;

/**
 * Milliseconds for which a connection is kept while the port closes, once its last answer has left: the peer may read
 * slowly, or may never close its end.
 */
const LINGER_TIME = 5000;

/**
 * Milliseconds that a round of the event loop with nothing to do takes at most, and those after which no such
 * round is waited for.
 */
const EMPTY_ROUND = 0.05;
const MAX_WAIT_FOR_EMPTY = 500;

/** Sockets that wait for the system to accept them. */
const BACKLOG = 1024;

/** A listener that accepts nothing before `listen`. */
export function createListener({ dispatch, logger, holdings, tls }: ListenerOptions): Listener {
  const sessions = new SessionWatch();
  /** Since when nothing has been left to answer on a connection, as was seen while the port closes; else infinite. */
  const sockets = new Map<Socket, number>();
  const track = (socket: Socket): void => {
    sockets.set(socket, Number.POSITIVE_INFINITY);
    socket.once('close', () => sockets.delete(socket));
  };
  /** Those whose protocol has not shown yet. */
  const unknown = new Set<Socket>();
  const pipelines = new Pipelines();
  const raw = createRawAnswers(logger, (socket) => pipelines.discard(socket));
  const counted: RequestListener = (request, response) => {
    if (!isHttp2(request)) pipelines.began(request, response);
    dispatch.take(request, response);
  };
  const http1 = createHttp1Server(counted, raw);
  const onSession = (session: ServerHttp2Session): void => {
    holdings.bindSession(session);
    sessions.add(session);
  };
  const odd: OddHttp2 = { dispatch: counted, raw, onSession, holdings };
  const secure = tls === undefined ? undefined : createTlsServer(tls, odd, pipelines, track);
  const speak = secure === undefined ? createSniffer({ http1, unknown, odd, pipelines }) : createTlsFront(secure);
  const server: Server = createNetServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE },
    (socket) => {
      // A socket without a listener for its errors ends the process with them.
      socket.on('error', () => {});
      if (typeof server.address() === 'string') nameLocalPeer(socket);
      const connection = holdings.accept(socket);
      if (connection === undefined) return;
      track(socket);
      speak(socket, connection.line);
    },
  );

  // A secure server has Node's own method for its HTTP/1.1 connections, which its types do not show.
  const http1Connections = (secure ?? http1) as Pick<typeof http1, 'closeIdleConnections'>;

  return {
    listen: (place) => listen(server, { ...place, backlog: BACKLOG }),
    setCertificate: (files) => secure?.setSecureContext(files),
    startLeaving: () => sessions.startLeaving(),
    close: async (grace) => {
      const graceEnds = performance.now() + grace;
      await acceptWaiting(server);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      http1Connections.closeIdleConnections();
      if (unknown.size + sessions.fresh > 0) await sleep(FIRST_REQUEST_TIME);
      sessions.closeAll();
      for (const socket of unknown) socket.destroy();
      const timer = setTimeout(() => {
        sessions.destroyAll();
        for (const socket of sockets.keys()) socket.destroy();
      }, graceEnds - performance.now());
      // A keep-alive connection whose last response is under way becomes idle later.
      const sweep = setInterval(() => {
        http1Connections.closeIdleConnections();
        cutAnswered(sockets, pipelines);
      }, 50);
      await closed;
      clearTimeout(timer);
      clearInterval(sweep);
      http1.close();
      secure?.close();
      sessions.stop();
      holdings.stop();
    },
    closeIdle: () => {
      http1Connections.closeIdleConnections();
      sessions.closeIdle();
    },
  };
}

/** Cuts the connections on which nothing has been left to answer for long enough. */
function cutAnswered(sockets: Map<Socket, number>, pipelines: Pipelines): void {
  const now = performance.now();
  for (const [socket, since] of sockets) {
    const isAnswered = socket.writableFinished || pipelines.hasOnlyRest(socket);
    sockets.set(socket, isAnswered ? Math.min(since, now) : Number.POSITIVE_INFINITY);
    if (now - since > LINGER_TIME) socket.destroy();
  }
}

let localPeers = 0;

/** Gives a connection of a Unix socket what those of a port have: an address, and a port that tells it from others. */
function nameLocalPeer(socket: Socket): void {
  const port = ++localPeers;
  Object.defineProperties(socket, { remoteAddress: { value: LOCAL_PEER }, remotePort: { value: port } });
}

/**
 * Resolves when no connection waits to be accepted: closing the port would reset it, and its first request with it.
 * Connections are accepted just before immediates run, one in each round, so a round that took no time and brought none
 * leaves next to none for another.
 */
async function acceptWaiting(server: Server): Promise<void> {
  let came = false;
  const onConnection = (): void => {
    came = true;
  };
  server.on('connection', onConnection);
  const giveUp = performance.now() + MAX_WAIT_FOR_EMPTY;
  for (let now = performance.now(); now < giveUp; ) {
    came = false;
    const started = now;
    await new Promise(setImmediate);
    now = performance.now();
    if (!came && now - started < EMPTY_ROUND) break;
  }
  server.off('connection', onConnection);
}

/** Hands cleartext connections to the protocol that they speak. */
function createSniffer(parts: {
  readonly http1: Server;
  readonly unknown: Set<Socket>;
  readonly odd: OddHttp2;
  readonly pipelines: Pipelines;
}): (socket: Socket, line: Line) => void {
  const { http1, unknown, odd, pipelines } = parts;
  const http2 = createHttp2Server(HTTP2_OPTIONS, odd.dispatch as never);
  answerOddHttp2(http2, odd);
  const turns = createSessionTurns();
  return (socket, line) => {
    const arrival = turns.arrived();
    unknown.add(socket);
    socket.once('close', () => unknown.delete(socket));
    sniff(socket, HEADERS_TIMEOUT, (protocol) => {
      const begin = (server: Server | Http2Server): void => {
        unknown.delete(socket);
        readInTurns(socket, server === http1 ? line.sockets : line.sessions);
        server.emit('connection', socket);
      };
      if (protocol === 'http1') {
        begin(http1);
        pipelines.add(socket, line);
      } else
        turns.take(socket, arrival, () => {
          joinPieces(socket);
          begin(http2);
        });
    });
  };
}

/**
 * Joins the pieces that a socket has buffered. Node hands them to a new session one after another, and goes on if one
 * of them has ended the session, whose handle is gone by then: a TypeError that nobody can catch.
 */
function joinPieces(socket: Socket): void {
  const pieces: Buffer[] = [];
  while (socket.readableLength > 0) pieces.push(socket.read() as Buffer);
  if (pieces.length > 0) socket.unshift(Buffer.concat(pieces));
}

/**
 * Hands connections to a server that does not listen itself, so that those which may not stay never begin a handshake.
 */
function createTlsFront(secure: Http2SecureServer): (socket: Socket) => void {
  const turns = createSessionTurns();
  // A handshake takes a millisecond or two.
  return (socket) => turns.take(socket, turns.arrived(), () => void secure.emit('connection', socket));
}

function createTlsServer(
  tls: TlsFiles,
  odd: OddHttp2,
  pipelines: Pipelines,
  track: (socket: Socket) => void,
): Http2SecureServer {
  const options = {
    ...HTTP2_OPTIONS,
    ...HTTP1_OPTIONS,
    ...tls,
    allowHTTP1: true,
    handshakeTimeout: HEADERS_TIMEOUT,
    minVersion: 'TLSv1.2' as const,
  };
  const server = createSecureServer(options, odd.dispatch as never);
  answerOddHttp2(server, odd);
  server.on('secureConnection', (socket) => {
    const connection = odd.holdings.bind(socket);
    if (connection === undefined) return;
    track(socket);
    const { line } = connection;
    readInTurns(socket, socket.alpnProtocol === 'h2' ? line.sessions : line.sockets);
    if (socket.alpnProtocol !== 'h2') pipelines.add(socket, line);
  });
  server.on('clientError', odd.raw.clientError as never);
  server.on('tlsClientError', () => {});
  // The timeouts are only watched once the server believes that it listens.
  server.emit('listening');
  return server;
}

/** Has a socket read when its line has turns. */
function readInTurns(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
}
