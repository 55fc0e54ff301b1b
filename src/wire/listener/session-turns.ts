/**
 * HTTP/2 connections begin one at a time, each in a turn of the event loop of its own: what came with the preface may
 * be a hundred requests, and of many connections that arrive together none may add to another's time, or everybody else
 * would wait for their sum. Addresses take turns, so that one with many connections holds up another by one of them.
 *
 * Node accepts one connection in a turn. While some arrive none begins, for a while: a caller's connection may wait to
 * be accepted behind hundreds of somebody else's, and would wait for what each of these does first.
 */
import type { Socket } from 'node:net';

/** Whose turn it is to begin. */
export interface SessionTurns {
  /** A connection was accepted. Returns its number. */
  arrived(): number;
  /**
   * Calls `begin` of the connection with this number: now, if none arrived behind it and no other began in this turn;
   * else in a turn to come, unless the socket is gone by then.
   */
  take(socket: Socket, arrival: number, begin: () => void): void;
}

interface Waiting {
  readonly socket: Socket;
  readonly begin: () => void;
}

/**
 * Milliseconds, from when one has to wait, for which connections that arrive keep others from beginning: enough to accept
 * hundreds. After it as many begin as are accepted, so that those who wait never become more.
 */
const MOST_WAIT = 60;

/** Nobody waits yet. */
export function createSessionTurns(): SessionTurns {
  /** By address, the one that has waited longest for a turn first. */
  const waiting = new Map<string, Waiting[]>();
  let running = false;
  let arrivals = 0;
  /** As many had arrived in the turn before. */
  let before = 0;
  /** Since when there have been some that wait. */
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
