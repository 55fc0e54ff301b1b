/**
 * One port for everything: HTTP/1.1 (REST, Connect) and HTTP/2 (gRPC, Connect, REST), in cleartext by the first bytes of a connection, with a
 * certificate by ALPN.
 */
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  type ServerHttp2Session,
} from 'node:http2';
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../logger.ts';
import type { Dispatch } from '../dispatch.ts';
import { type HttpRequest, type HttpResponse, isHttp2 } from '../http.ts';
import { HEADERS_TIMEOUT } from './bounds.ts';
import { createHttp1Server, http1Options } from './http1-server.ts';
import { createSessionWatch, http2Options } from './http2-sessions.ts';
import { createRawAnswers, type RawAnswers } from './raw-answer.ts';
import { sniff } from './sniff.ts';

/** PEM texts. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export interface ListenerOptions {
  readonly dispatch: Dispatch;
  readonly logger: Logger;
  /** Connections past it are closed at once. */
  readonly maxConnections: number;
  /** Serve TLS with this certificate; cleartext if undefined. */
  readonly tls: TlsFiles | undefined;
}

export interface Listener {
  /** Resolves with the port once connections are accepted. @throws the system's error if the address cannot be had. */
  listen(port: number, host: string): Promise<number>;
  /** Uses a new certificate for connections from now on. @throws Error if it is not valid; the old one stays. */
  setCertificate(tls: TlsFiles): void;
  /** From now on every connection serves one more request, and its peer is told with the response. */
  startLeaving(): void;
  /** Accepts nothing more and resolves when every connection has ended; those that have not after `grace` milliseconds are cut. */
  close(grace: number): Promise<void>;
  /** Closes every connection that has no request in progress. */
  closeIdle(): void;
  readonly connections: number;
}

/** Milliseconds that a connection which was accepted last has for its first request, which may be on the way. */
const FIRST_REQUEST_TIME = 100;

/** Milliseconds that a round of the event loop with nothing to do takes at most, and those after which no such round is waited for. */
const EMPTY_ROUND = 0.05;
const MAX_WAIT_FOR_EMPTY = 500;

/** Sockets that wait for the system to accept them. */
const BACKLOG = 1024;

export function createListener({ dispatch, logger, maxConnections, tls }: ListenerOptions): Listener {
  const sessions = createSessionWatch();
  const sockets = new Set<Socket>();
  /** Those whose protocol has not shown yet. */
  const unknown = new Set<Socket>();
  const raw = createRawAnswers(logger);
  const http1 = createHttp1Server(dispatch, raw);
  const onSession = (session: ServerHttp2Session): void => sessions.add(session);
  const secure = tls === undefined ? undefined : createTlsServer(tls, dispatch, raw, onSession);
  const server: Server = secure ?? createCleartextServer(http1, unknown, dispatch, raw, onSession);
  server.maxConnections = maxConnections;
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('drop', () => logger.warn({ maxConnections }, 'a connection was closed: there are as many as allowed'));

  // A secure server has Node's own method for its HTTP/1.1 connections, which its types do not show.
  const http1Connections = (secure ?? http1) as Pick<typeof http1, 'closeIdleConnections'>;

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen({ port, host, backlog: BACKLOG }, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
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
        for (const socket of sockets) socket.destroy();
      }, graceEnds - performance.now());
      // A keep-alive connection whose last response is under way becomes idle later.
      const sweep = setInterval(() => http1Connections.closeIdleConnections(), 50);
      await closed;
      clearTimeout(timer);
      clearInterval(sweep);
      http1.close();
      sessions.stop();
    },
    closeIdle: () => {
      http1Connections.closeIdleConnections();
      sessions.closeIdle();
    },
    get connections() {
      return sockets.size;
    },
  };
}

/**
 * Resolves when no connection waits to be accepted: closing the port would reset it, and its first request with it. Connections are accepted
 * just before immediates run, one in each round, so a round that took no time and brought none leaves next to none for another.
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

function createCleartextServer(
  http1: ReturnType<typeof createHttp1Server>,
  unknown: Set<Socket>,
  dispatch: Dispatch,
  raw: RawAnswers,
  onSession: (session: ServerHttp2Session) => void,
): Server {
  const http2 = createHttp2Server(http2Options, dispatch as never);
  answerOddHttp2(http2, dispatch, raw, onSession);
  return createNetServer({ noDelay: true }, (socket) => {
    unknown.add(socket);
    socket.once('close', () => unknown.delete(socket));
    sniff(socket, HEADERS_TIMEOUT, (protocol) => {
      unknown.delete(socket);
      (protocol === 'http2' ? http2 : http1).emit('connection', socket);
    });
  });
}

function createTlsServer(
  tls: TlsFiles,
  dispatch: Dispatch,
  raw: RawAnswers,
  onSession: (session: ServerHttp2Session) => void,
): Http2SecureServer {
  const options = {
    ...http2Options,
    ...http1Options,
    ...tls,
    allowHTTP1: true,
    handshakeTimeout: HEADERS_TIMEOUT,
    minVersion: 'TLSv1.2' as const,
  };
  const server = createSecureServer(options, dispatch as never);
  answerOddHttp2(server, dispatch, raw, onSession);
  server.on('clientError', raw.clientError as never);
  server.on('tlsClientError', () => {});
  return server;
}

/** What Node would answer by itself, without a body: a CONNECT and an unknown Expect. */
function answerOddHttp2(
  server: Http2Server | Http2SecureServer,
  dispatch: Dispatch,
  raw: RawAnswers,
  onSession: (session: ServerHttp2Session) => void,
): void {
  server.on('session', onSession);
  server.on('connect', (request: HttpRequest, response: unknown) => {
    // A secure server also emits this for HTTP/1.1, with a bare socket.
    if (isHttp2(request)) dispatch(request, response as HttpResponse);
    else raw.connect(request, response as Duplex);
  });
  server.on('checkExpectation', dispatch as never);
}
