/**
 * HTTP/2 connections begin one at a time, each in a turn of the event loop of its own. A hundred requests may come with
 * the preface, and if many connections began in one turn, everybody else would wait for the sum of their work. Client
 * addresses take turns, so that an address with many connections delays another address by one connection at most.
 *
 * Node accepts one connection in a turn. While connections keep arriving none begins, for up to MOST_WAIT: a caller's
 * connection may be waiting to be accepted behind hundreds of somebody else's, and would wait for the work of each.
 */
import type { Socket } from 'node:net';

/** Decides which of the accepted HTTP/2 connections begins next. */
export interface SessionTurns {
  /** Notes that a connection was accepted. Returns its number, for `take`. */
  arrived(): number;
  /**
   * Calls `begin` of the connection with this number: now, if none arrived after it and no other began in this turn;
   * otherwise in a later turn, unless the socket is destroyed by then.
   */
  take(socket: Socket, arrival: number, begin: () => void): void;
}

interface Waiting {
  readonly socket: Socket;
  readonly begin: () => void;
}

/**
 * Milliseconds, counted from when the first connection has to wait, for which new arrivals keep others from beginning:
 * enough to accept hundreds. After that one begins for each that is accepted, so that the line does not grow.
 */
const MOST_WAIT = 60;

/** Turns in which no connection waits yet. */
export function createSessionTurns(): SessionTurns {
  /** The waiting connections by address; the address that has waited longest for a turn comes first. */
  const waiting = new Map<string, Waiting[]>();
  let running = false;
  let arrivals = 0;
  /** The value of `arrivals` in the turn before. */
  let before = 0;
  /** When the first of those that wait now began to wait, on the clock of `performance.now()`. */
  let since = 0;

  const next = (): Waiting | undefined => {
    for (const [address, line] of waiting) {
      const first = line.shift();
      waiting.delete(address);
      if (line.length > 0) waiting.set(address, line);
      if (first?.socket.destroyed === false) return first;
    }
    return undefined;
  };
  const turn = (): void => {
    const now = performance.now();
    const postponed = arrivals !== before && now - since < MOST_WAIT;
    before = arrivals;
    if (postponed) {
      setImmediate(turn);
      return;
    }
    const first = next();
    running = first !== undefined;
    if (first === undefined) return;
    setImmediate(turn);
    first.begin();
  };

  return {
    arrived() {
      arrivals += 1;
      return arrivals;
    },
    take(socket, arrival, begin) {
      const isAlone = !running && arrival === arrivals;
      if (!running) {
        running = true;
        setImmediate(turn);
      }
      if (isAlone) {
        begin();
        return;
      }
      if (waiting.size === 0) since = performance.now();
      const address = socket.remoteAddress ?? '';
      const line = waiting.get(address);
      if (line === undefined) waiting.set(address, [{ socket, begin }]);
      else line.push({ socket, begin });
    },
  };
}
