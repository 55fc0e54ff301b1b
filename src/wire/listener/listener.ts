/**
 * One port for everything: HTTP/1.1 (REST, Connect) and HTTP/2 (gRPC, Connect, REST), in cleartext by the first bytes
 * of a connection, with a certificate by ALPN.
 */
import type { Server as HttpServer, RequestListener } from 'node:http';
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  type ServerHttp2Session,
} from 'node:http2';
import { createServer as createNetServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { LOCAL_PEER } from '../../domain/client-address.ts';
import type { Logger } from '../../logger.ts';
import type { Dispatch } from '../dispatch.ts';
import type { Holdings } from '../holdings/holdings.ts';
import { HEADERS_TIMEOUT, TCP_KEEP_ALIVE } from '../http/bounds.ts';
import { type HttpRequest, type HttpResponse, isHttp2 } from '../http/messages.ts';
import type { Line } from '../http/turns.ts';
import { createHttp1Server, HTTP1_OPTIONS, listen, type Place } from './http1-server.ts';
import { HTTP2_OPTIONS, SessionTurns, SessionWatch } from './http2-sessions.ts';
import { answerOddHttp2, type OddHttp2 } from './odd-http2.ts';
import { Pipelines } from './pipelines.ts';
import { RawAnswers } from './raw-answer.ts';
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

/** The port that callers connect to, from `listen` to `close`; it accepts nothing before. */
export class Listener {
  readonly #dispatch: Dispatch;
  readonly #holdings: Holdings;
  readonly #server: Server;
  readonly #http1: Server;
  /** Of cleartext connections. */
  readonly #http2: Http2Server | undefined;
  /** Of both protocols, where there is a certificate. */
  readonly #secure: Http2SecureServer | undefined;
  readonly #sessions = new SessionWatch();
  readonly #turns = new SessionTurns();
  readonly #pipelines = new Pipelines();
  /** Since when nothing has been left to answer on a connection, as was seen while the port closes; else infinite. */
  readonly #sockets = new Map<Socket, number>();
  /** Those whose protocol has not shown yet. */
  readonly #unknown = new Set<Socket>();

  constructor({ dispatch, logger, holdings, tls }: ListenerOptions) {
    this.#dispatch = dispatch;
    this.#holdings = holdings;
    const raw = new RawAnswers(logger, (socket) => this.#pipelines.discard(socket));
    const take: RequestListener = (request, response) => this.#take(request, response);
    this.#http1 = createHttp1Server(take, raw);
    const onSession = (session: ServerHttp2Session): void => {
      holdings.connections.bindSession(session);
      this.#sessions.add(session);
    };
    const odd: OddHttp2 = { dispatch: take, raw, onSession, holdings };
    if (tls === undefined) {
      this.#http2 = createHttp2Server(HTTP2_OPTIONS, take as never);
      answerOddHttp2(this.#http2, odd);
    } else this.#secure = createTlsServer(tls, odd, (socket) => this.#beginSecure(socket));
    this.#server = createNetServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE },
      (socket) => this.#accept(socket),
    );
  }

  /** Resolves with the place once connections are accepted. @throws the system's error if it cannot be had. */
  listen(place: Place): Promise<Place> {
    return listen(this.#server, { ...place, backlog: BACKLOG });
  }

  /** Uses a new certificate for connections from now on. @throws Error if it is not valid; the old one stays. */
  setCertificate(tls: TlsFiles): void {
    this.#secure?.setSecureContext(tls);
  }

  /** From now on every connection serves one more request, and its peer is told with the response. */
  startLeaving(): void {
    this.#sessions.startLeaving();
  }

  /**
   * Accepts nothing more and resolves when every connection has ended; those that have not after `grace`
   * milliseconds are cut.
   */
  async close(grace: number): Promise<void> {
    const graceEnds = performance.now() + grace;
    await acceptWaiting(this.#server);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#closeIdleHttp1();
    if (this.#unknown.size + this.#sessions.fresh > 0) {
      await sleep(FIRST_REQUEST_TIME);
      // What arrived meanwhile is read after timers and before immediates; unread, it would reset its connection.
      await new Promise(setImmediate);
    }
    this.#sessions.closeAll();
    for (const socket of this.#unknown) socket.destroy();
    const timer = setTimeout(() => {
      this.#sessions.destroyAll();
      for (const socket of this.#sockets.keys()) socket.destroy();
    }, graceEnds - performance.now());
    // A keep-alive connection whose last response is under way becomes idle later.
    const sweep = setInterval(() => {
      this.#closeIdleHttp1();
      this.#cutAnswered();
    }, 50);
    await closed;
    clearTimeout(timer);
    clearInterval(sweep);
    this.#http1.close();
    this.#secure?.close();
    this.#sessions.stop();
    this.#holdings.stop();
  }

  /** Closes every connection that has no request in progress. */
  closeIdle(): void {
    this.#closeIdleHttp1();
    this.#sessions.closeIdle();
  }

  #closeIdleHttp1(): void {
    // A secure server has Node's own method for its HTTP/1.1 connections, which its types do not show.
    ((this.#secure ?? this.#http1) as HttpServer).closeIdleConnections();
  }

  /** Cuts the connections on which nothing has been left to answer for long enough. */
  #cutAnswered(): void {
    const now = performance.now();
    for (const [socket, since] of this.#sockets) {
      const isAnswered = socket.writableFinished || this.#pipelines.hasOnlyRest(socket);
      this.#sockets.set(socket, isAnswered ? Math.min(since, now) : Number.POSITIVE_INFINITY);
      if (now - since > LINGER_TIME) socket.destroy();
    }
  }

  #track(socket: Socket): void {
    this.#sockets.set(socket, Number.POSITIVE_INFINITY);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #accept(socket: Socket): void {
    // A socket without a listener for its errors ends the process with them.
    socket.on('error', () => {});
    if (typeof this.#server.address() === 'string') nameLocalPeer(socket);
    const connection = this.#holdings.connections.accept(socket);
    if (connection === undefined) return;
    this.#track(socket);
    const secure = this.#secure;
    if (secure === undefined) this.#sniff(socket, connection.line);
    // A handshake takes a millisecond or two. One that may not stay never begins it: the server does not listen itself.
    else this.#turns.take(socket, this.#turns.arrived(), () => void secure.emit('connection', socket));
  }

  /** Hands a cleartext connection to the protocol that it speaks. */
  #sniff(socket: Socket, line: Line): void {
    const arrival = this.#turns.arrived();
    this.#unknown.add(socket);
    socket.once('close', () => this.#unknown.delete(socket));
    sniff(socket, HEADERS_TIMEOUT, (protocol) => {
      const begin = (server: Server | Http2Server | undefined, sockets: Set<Socket>): void => {
        this.#unknown.delete(socket);
        readInTurns(socket, sockets);
        server?.emit('connection', socket);
      };
      if (protocol === 'http1') {
        begin(this.#http1, line.sockets);
        this.#pipelines.add(socket, line);
      } else
        this.#turns.take(socket, arrival, () => {
          joinPieces(socket);
          begin(this.#http2, line.sessions);
        });
    });
  }

  /** Begins with a connection whose handshake is done. */
  #beginSecure(socket: TLSSocket): void {
    const connection = this.#holdings.connections.bind(socket);
    if (connection === undefined) return;
    this.#track(socket);
    const { line } = connection;
    readInTurns(socket, socket.alpnProtocol === 'h2' ? line.sessions : line.sockets);
    if (socket.alpnProtocol !== 'h2') this.#pipelines.add(socket, line);
  }

  #take(request: HttpRequest, response: HttpResponse): void {
    if (!isHttp2(request)) this.#pipelines.began(request, response);
    this.#dispatch.take(request, response);
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

/**
 * Joins the pieces that a socket has buffered. Node hands them to a new session one after another, and goes on if one
 * of them has ended the session, whose handle is gone by then: a TypeError that nobody can catch.
 */
function joinPieces(socket: Socket): void {
  const pieces: Buffer[] = [];
  while (socket.readableLength > 0) pieces.push(socket.read() as Buffer);
  if (pieces.length > 0) socket.unshift(Buffer.concat(pieces));
}

/** A server that does not listen itself: connections are handed to it, and come back once their handshake is done. */
function createTlsServer(tls: TlsFiles, odd: OddHttp2, begin: (socket: TLSSocket) => void): Http2SecureServer {
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
  server.on('secureConnection', begin);
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
