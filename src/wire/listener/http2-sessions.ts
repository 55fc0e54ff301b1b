/** Bounds for HTTP/2 sessions, which Node watches less than HTTP/1.1 connections. */
import type { ServerHttp2Session, Settings } from 'node:http2';
import type { Socket } from 'node:net';
import {
  BUSY_PING_TIMEOUT,
  CHECK_INTERVAL,
  HEADERS_TIMEOUT,
  MAX_HEADER_BYTES,
  MAX_STREAMS,
  PING_INTERVAL,
  SESSION_IDLE_TIMEOUT,
  SESSION_RESETS,
} from '../http/bounds.ts';

/** Options that the cleartext and the TLS server share. */
export const HTTP2_OPTIONS = {
  settings: {
    maxConcurrentStreams: MAX_STREAMS,
    maxHeaderListSize: MAX_HEADER_BYTES,
    enablePush: false,
  } satisfies Settings,
  maxSessionMemory: 8,
  ...SESSION_RESETS,
  // Strict validation silently drops a header that ends in a space. If that held a key, its caller would be served
  // as anonymous.
  strictFieldWhitespaceValidation: false,
};

/** Milliseconds between pings, and those in which a peer with open streams must answer one. */
export interface PingTimes {
  readonly interval: number;
  readonly busyTimeout: number;
}

const PING_TIMES: PingTimes = { interval: PING_INTERVAL, busyTimeout: BUSY_PING_TIMEOUT };

/** One session as it was last seen. Times are on the clock of `performance.now()`. */
interface Watched {
  streams: number;
  /** Whether it has had a stream. */
  used: boolean;
  /** When the last stream ended, or the session began. */
  quietSince: number;
  /** When the ping went out that the peer has not answered; there is one at a time. */
  pingedAt: number | undefined;
  /** When the peer was last known to be listening. */
  heardAt: number;
  /** Whether the peer has answered a ping since the session became quiet. */
  heardWhileQuiet: boolean;
  /** Bytes that had arrived when it was last looked at with streams open. */
  received: number;
}

/**
 * Watches over all sessions of a listener.
 *
 * Node can send one GOAWAY for a session: it names the last stream that was seen, a stream that crosses it on the
 * wire is ignored, and the connection ends behind the last answer. A proxy does not repeat a request that may have
 * had an effect, and nginx takes an answer for a broken one if it reads the end together with it and still owes an
 * acknowledgement. So a session is closed when its peer owes none and is not opening a stream: while one is open,
 * since such a proxy has one at a time, or else when two pings in a row are answered. Proxies drop an idle connection
 * on which a ping arrives; if one has just been taken for a request, the session still serves it. A single answer
 * would not do: a peer may read a ping together with the last answer, and then begin its next stream.
 *
 * A session without streams is asked with a ping whether its peer still listens: a peer that has stopped in the
 * middle of a frame, which nothing else shows, cannot answer, nor can one that is gone. Their sessions are destroyed
 * after the time that headers may take. A session with streams is asked when nothing has come from it for the time
 * between pings: otherwise a watch would keep the session of a vanished peer for ever. A session that its peer has
 * closed is asked at once: where that sent GOAWAY and then broke the protocol, nghttp2 reads and writes nothing more,
 * Node does not end the session, and the end of its connection is never read.
 */
export class SessionWatch {
  readonly #times: PingTimes;
  readonly #sessions = new Map<ServerHttp2Session, Watched>();
  #state: 'serving' | 'leaving' | 'closing' = 'serving';
  readonly #timer: NodeJS.Timeout;

  constructor(times: PingTimes = PING_TIMES) {
    this.#times = times;
    this.#timer = setInterval(() => {
      const now = performance.now();
      for (const [session, watched] of this.#sessions) this.#look(session, watched, now);
    }, CHECK_INTERVAL);
    this.#timer.unref();
  }

  add(session: ServerHttp2Session): void {
    const now = performance.now();
    const watched: Watched = {
      streams: 0,
      used: false,
      quietSince: now,
      pingedAt: undefined,
      heardAt: now,
      heardWhileQuiet: false,
      received: 0,
    };
    this.#sessions.set(session, watched);
    session.on('stream', (stream) => {
      watched.streams += 1;
      watched.used = true;
      if (this.#state !== 'serving') this.#end(session, watched);
      stream.once('close', () => {
        watched.streams -= 1;
        watched.quietSince = performance.now();
        watched.heardAt = watched.quietSince;
        watched.heardWhileQuiet = false;
      });
    });
    session.on('error', () => {});
    session.once('close', () => this.#sessions.delete(session));
    if (this.#state === 'closing') this.#end(session, watched);
  }

  /** Begins to leave: each session, future ones included, ends with its next stream, if its peer owes nothing then. */
  startLeaving(): void {
    this.#state = 'leaving';
  }

  /** How many sessions may have their first stream on the way. */
  get fresh(): number {
    return [...this.#sessions.values()].filter(({ used }) => !used).length;
  }

  /** Ends every session, those to come included, once its streams are done. */
  closeAll(): void {
    this.#state = 'closing';
    for (const [session, watched] of this.#sessions) this.#end(session, watched);
  }

  /** Ends every session now. */
  destroyAll(): void {
    for (const session of this.#sessions.keys()) session.destroy();
  }

  /** Ends the sessions that have no stream. */
  closeIdle(): void {
    for (const [session, { streams }] of this.#sessions) if (streams === 0) session.close();
  }

  /** Ends the looks over the sessions, which go on. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #look(session: ServerHttp2Session, watched: Watched, now: number): void {
    if (session.destroyed) return;
    if (watched.streams > 0) this.#lookAtBusy(session, watched, now);
    else if (!session.closed) this.#lookAtQuiet(session, watched, now);
  }

  #lookAtBusy(session: ServerHttp2Session, watched: Watched, now: number): void {
    const { bytesRead } = session.socket;
    const { interval, busyTimeout } = this.#times;
    if (bytesRead !== watched.received) {
      watched.received = bytesRead;
      watched.heardAt = now;
    } else if (watched.pingedAt !== undefined) {
      if (now - Math.max(watched.pingedAt, watched.heardAt) > busyTimeout) session.destroy();
    } else if (now - watched.heardAt > (session.closed && this.#state === 'serving' ? CHECK_INTERVAL : interval)) {
      this.#ask(session, watched);
    }
  }

  #lookAtQuiet(session: ServerHttp2Session, watched: Watched, now: number): void {
    if (watched.pingedAt !== undefined) {
      if (now - Math.max(watched.pingedAt, watched.heardAt) > HEADERS_TIMEOUT / 2) session.destroy();
    } else if (now - watched.quietSince > SESSION_IDLE_TIMEOUT) {
      session.close();
    } else if (now - watched.heardAt > (watched.heardWhileQuiet ? this.#times.interval : HEADERS_TIMEOUT / 2)) {
      this.#ask(session, watched);
    }
  }

  /** Closes a session now, or with an answer to a ping. */
  #end(session: ServerHttp2Session, watched: Watched): void {
    if (watched.pingedAt !== undefined) return;
    if (watched.streams > 0 && !session.pendingSettingsAck) session.close();
    else this.#ask(session, watched);
  }

  /** Asks a peer whether it still listens. */
  #ask(session: ServerHttp2Session, watched: Watched): void {
    if (session.destroyed) return;
    watched.pingedAt = performance.now();
    const onAnswer = (error: Error | null): void => {
      if (error === null) this.#answered(session, watched);
    };
    // For a closed session Node sends no ping, but still sends SETTINGS, which a peer acknowledges as well.
    if (session.closed) session.settings({}, onAnswer);
    else session.ping(onAnswer);
  }

  #answered(session: ServerHttp2Session, watched: Watched): void {
    const { streams, heardWhileQuiet } = watched;
    watched.pingedAt = undefined;
    watched.heardAt = performance.now();
    watched.heardWhileQuiet = streams === 0;
    if (this.#state === 'serving') return;
    if (streams > 0 || (heardWhileQuiet && this.#state === 'closing')) session.close();
    else if (this.#state === 'closing') this.#ask(session, watched);
  }
}

// HTTP/2 connections begin one at a time, each in a turn of the event loop of its own. A hundred requests may come with
// the preface, and if many connections began in one turn, everybody else would wait for the sum of their work. Client
// addresses take turns, so that an address with many connections delays another address by one connection at most.
//
// Node accepts one connection in a turn. While connections keep arriving none begins, for up to MOST_WAIT: a caller's
// connection may be waiting to be accepted behind hundreds of somebody else's, and would wait for the work of each.

/**
 * Milliseconds, counted from when the first connection has to wait, for which new arrivals keep others from beginning:
 * enough to accept hundreds. After that one begins for each that is accepted, so that the line does not grow.
 */
const MOST_WAIT = 60;

interface Waiting {
  readonly socket: Socket;
  readonly begin: () => void;
}

/** Decides which of the accepted HTTP/2 connections begins next. */
export class SessionTurns {
  /** The waiting connections by address; the address that has waited longest for a turn comes first. */
  readonly #waiting = new Map<string, Waiting[]>();
  #running = false;
  #arrivals = 0;
  /** The number of arrivals in the turn before. */
  #before = 0;
  /** When the first of those that wait now began to wait, on the clock of `performance.now()`. */
  #since = 0;

  /** Notes that a connection was accepted. Returns its number, for `take`. */
  arrived(): number {
    this.#arrivals += 1;
    return this.#arrivals;
  }

  /**
   * Calls `begin` of the connection with this number: now, if none arrived after it and no other began in this turn;
   * otherwise in a later turn, unless the socket is destroyed by then.
   */
  take(socket: Socket, arrival: number, begin: () => void): void {
    const isAlone = !this.#running && arrival === this.#arrivals;
    if (!this.#running) {
      this.#running = true;
      setImmediate(this.#turn);
    }
    if (isAlone) {
      begin();
      return;
    }
    if (this.#waiting.size === 0) this.#since = performance.now();
    const address = socket.remoteAddress ?? '';
    const line = this.#waiting.get(address);
    if (line === undefined) this.#waiting.set(address, [{ socket, begin }]);
    else line.push({ socket, begin });
  }

  readonly #turn = (): void => {
    const postponed = this.#arrivals !== this.#before && performance.now() - this.#since < MOST_WAIT;
    this.#before = this.#arrivals;
    const first = postponed ? undefined : this.#next();
    this.#running = postponed || first !== undefined;
    if (this.#running) setImmediate(this.#turn);
    first?.begin();
  };

  #next(): Waiting | undefined {
    for (const [address, line] of this.#waiting) {
      const first = line.shift();
      this.#waiting.delete(address);
      if (line.length > 0) this.#waiting.set(address, line);
      if (first?.socket.destroyed === false) return first;
    }
    return undefined;
  }
}
