/** Bounds for HTTP/2 sessions, which Node watches less than HTTP/1.1 connections. */
import type { ServerHttp2Session, Settings } from 'node:http2';
import type { Socket } from 'node:net';
import { CHECK_INTERVAL, HEADERS_TIMEOUT, MAX_HEADER_BYTES, MAX_STREAMS, SESSION_IDLE_TIMEOUT } from './bounds.ts';

/** Options that the cleartext and the TLS server share. */
export const http2Options = {
  settings: {
    maxConcurrentStreams: MAX_STREAMS,
    maxHeaderListSize: MAX_HEADER_BYTES,
    enablePush: false,
  } satisfies Settings,
  maxSessionMemory: 8,
  // Otherwise a header with a space at its end is silently dropped, and with it a key: its caller would be served as anonymous.
  strictFieldWhitespaceValidation: false,
};

/** Keeps an eye on all sessions of a listener. */
export interface SessionWatch {
  add(session: ServerHttp2Session): void;
  /** Tells every session to go away once its streams are done. */
  closeAll(): void;
  /** Ends every session now. */
  destroyAll(): void;
  /** Ends the sessions that have no stream. */
  closeIdle(): void;
  stop(): void;
}

interface Watched {
  streams: number;
  /** `bytesRead` of the socket when something whole last arrived. */
  settledBytes: number;
  /** When bytes of something unfinished were first seen, or undefined. */
  unsettledSince: number | undefined;
}

/** A watch. Sessions that send a part of a frame and then dawdle are destroyed after the time that headers may take. */
export function createSessionWatch(): SessionWatch {
  const sessions = new Map<ServerHttp2Session, Watched>();

  const timer = setInterval(() => {
    const now = performance.now();
    for (const [session, watched] of sessions) {
      const bytes = bytesRead(session);
      if (watched.streams > 0 || bytes === watched.settledBytes) watched.unsettledSince = undefined;
      else if (watched.unsettledSince === undefined) watched.unsettledSince = now;
      else if (now - watched.unsettledSince > HEADERS_TIMEOUT) session.destroy();
    }
  }, CHECK_INTERVAL);
  timer.unref();

  return {
    add(session) {
      const watched: Watched = { streams: 0, settledBytes: 0, unsettledSince: undefined };
      const settle = (): void => {
        watched.settledBytes = bytesRead(session);
        watched.unsettledSince = undefined;
      };
      sessions.set(session, watched);
      session.setTimeout(SESSION_IDLE_TIMEOUT, () => session.close());
      session.on('stream', (stream) => {
        settle();
        watched.streams += 1;
        stream.once('close', () => {
          watched.streams -= 1;
          settle();
        });
      });
      session.on('ping', settle);
      session.on('remoteSettings', settle);
      session.on('localSettings', settle);
      session.on('error', () => {});
      session.once('close', () => sessions.delete(session));
    },
    closeAll() {
      for (const session of sessions.keys()) session.close();
    },
    destroyAll() {
      for (const session of sessions.keys()) session.destroy();
    },
    closeIdle() {
      for (const [session, { streams }] of sessions) if (streams === 0) session.close();
    },
    stop: () => clearInterval(timer),
  };
}

/** A destroyed session has no socket any more. */
function bytesRead(session: ServerHttp2Session): number {
  return session.destroyed ? 0 : ((session.socket as Socket | undefined)?.bytesRead ?? 0);
}
