/**
 * Shares the turns of the event loop among client addresses. One read of a socket can hold thousands of requests, and
 * in one turn many sockets may be readable: if all that has arrived were served at once, everybody else would wait for
 * the sum of it. So an address has a share of each turn. What is beyond waits in its line, none of its connections is
 * read until the line is empty, and in each later turn some of the lines have their share, one after another.
 */
import type { Socket } from 'node:net';

/** Milliseconds of one turn that an address may use before its work has to wait. */
const SHARE = 1;
/** Milliseconds of one turn for all lines together; the last of them may exceed it by its share. */
const ALL_WAITING = 2;
/**
 * Milliseconds that a request counts at least: most of its work is done later, when its body has been read and its
 * answer is written.
 */
const LEAST_COST = 0.1;
/** As many requests as have a whole share. */
export const A_SHARE = SHARE / LEAST_COST;

/** Does a piece of work. Returns how many requests began with it, and whether there is another piece. */
export type Work = () => { readonly requests: number; readonly more: boolean };

/** The work of one client address, or of one connection of a trusted proxy; none at first. */
export class Line {
  /** The turn in which it last had work done, and the milliseconds that it used of it. */
  turn = 0;
  used = 0;
  /** Work that waits, in order. */
  readonly waiting: Work[] = [];
  /**
   * The sockets on which its requests come. Those of `sessions` are read by HTTP/2 sessions, past what Node notes of
   * the others: whether they are read at all.
   */
  readonly sockets = new Set<Socket>();
  readonly sessions = new Set<Socket>();
  /** Whether the sockets are not read until the work is done. */
  stopped = false;
}

/** What Node reads a socket with. */
type Handle = { readonly reading: boolean; readStop(): void; readStart(): void } | null | undefined;

const handleOf = (socket: Socket): Handle => (socket as unknown as { readonly _handle?: Handle })._handle;

/** The number of the turn. The thread has one event loop, and so one. */
let turn = 0;
let ending = false;
/** Lines with work that waits, or with sockets that are not read; the one that has waited longest comes first. */
const lines = new Set<Line>();

/** The number of the present turn of the event loop, for counts that begin anew with each. */
export function presentTurn(): number {
  endLater();
  return turn;
}

/** Does the work now if nothing of its line waits and some of the line's share is left, or else when its turn comes. */
export function takeTurn(line: Line, work: Work): void {
  if (line.turn !== presentTurn()) begin(line);
  if (line.waiting.length === 0 && !workOn(line, work)) return;
  line.waiting.push(work);
  lines.add(line);
  line.stopped = true;
  for (const socket of line.sockets) handleOf(socket)?.readStop();
  for (const socket of line.sessions) handleOf(socket)?.readStop();
}

function begin(line: Line): void {
  line.turn = turn;
  line.used = 0;
}

/** Does pieces of the work while the line may; returns whether there are more. */
function workOn(line: Line, work: Work): boolean {
  let since = performance.now();
  while (line.used < SHARE) {
    const { requests, more } = work();
    const now = performance.now();
    line.used += Math.max(now - since, requests * LEAST_COST);
    since = now;
    if (!more) return false;
  }
  return true;
}

function endLater(): void {
  if (ending) return;
  ending = true;
  setImmediate(next);
}

/** Ends a turn, and begins the next one with what waits. */
function next(): void {
  turn += 1;
  ending = false;
  if (lines.size === 0) return;
  endLater();
  let used = 0;
  for (const line of [...lines]) {
    if (used >= ALL_WAITING) return;
    lines.delete(line);
    begin(line);
    for (let left = line.waiting.length; left > 0 && line.used < SHARE; left -= 1) {
      const work = line.waiting.shift() as Work;
      if (workOn(line, work)) line.waiting.push(work);
    }
    if (line.waiting.length > 0) {
      lines.add(line);
    } else if (line.used >= SHARE) {
      // What is read now would find no share left.
      lines.add(line);
    } else {
      readOn(line);
      line.used = 0;
      // What one of its sessions reads may take several milliseconds, so that no other line reads on in this turn.
      if (line.sessions.size > 0) return;
    }
    used += SHARE;
  }
}

/** Reads the sockets of a line again, but for those whose own reader wants no more. */
function readOn(line: Line): void {
  line.stopped = false;
  for (const socket of line.sockets) {
    const handle = handleOf(socket);
    if (handle?.reading === true) handle.readStart();
  }
  for (const socket of line.sessions) handleOf(socket)?.readStart();
}
