/**
 * Looks over the open requests: measures what waits to be read, and gives up responses that nobody reads and requests
 * that never end. Regular looks cost a request nothing, and see what was handed to the stream whichever protocol wrote
 * it.
 */
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import type { Account, Accounts, HoldingTally } from './accounts.ts';
import type { Connections } from './connections.ts';
import { type Connection, closeConnection, giveUp, type OpenRequest, streamOf } from './open-request.ts';
import type { HoldingSettings } from './settings.ts';

/** Milliseconds in which the rest of a request must arrive once it has been answered; the rest is discarded. */
const REST_TIME = 5000;
/** Milliseconds after which a request that has no answer is given up: three times what a call may take. */
export const MOST_TIME = 90_000;
/** How many times the write timeout a response may take in all, however slowly it is read. */
const MOST_TIMEOUTS = 10;
/** Bytes that must leave a connection to count as progress: the answer to a ping is smaller. */
const PROGRESS = 1024;
/** Milliseconds after which a response may be given up for the room that it takes, or because it is an error. */
const LEAST_WAIT = 2000;
/** The part of the bound of all that is free again after responses were given up for it, so that there is room. */
const FREED = 16;

/** What one look over the open requests measured. */
export interface Look {
  /** Bytes that wait to be read, all together. */
  readonly unread: number;
  /** Bytes that responses which are not made yet may add. */
  readonly reserved: number;
  /** Streams that are meant to stay open. */
  readonly watches: number;
}

/** What is looked at, and by which bounds. */
export interface LookOptions {
  readonly settings: Pick<HoldingSettings, 'unread' | 'writeTimeout'>;
  /** Milliseconds, see `MOST_TIME`. */
  readonly mostTime: number;
  readonly connections: Connections;
  readonly accounts: Accounts;
  readonly tally: HoldingTally;
}

/** Takes a look, at the time `now`; to be called about twice a second. */
export function lookOver(options: LookOptions, now: number): Look {
  const { settings, connections, accounts, tally } = options;
  for (const account of accounts.values()) {
    account.unread = 0;
    account.reserved = 0;
  }
  const waiting: OpenRequest[] = [];
  const crowded = new Set<Account>();
  let unread = 0;
  let reserved = 0;
  let watches = 0;
  for (const connection of connections.values()) {
    if (connection.requests.size === 0) continue;
    noteProgress(connection, now);
    for (const request of [...connection.requests]) {
      lookAt(request, now, options);
      const bytes = request.waiting;
      unread += bytes;
      request.account.unread += bytes;
      request.account.reserved += request.reserved;
      reserved += request.reserved;
      if (request.watch !== undefined) watches += 1;
      if (request.answeredAt !== undefined && bytes > 0) waiting.push(request);
      if (request.account.unread > settings.unread.perAddress) crowded.add(request.account);
    }
  }
  waiting.sort((a, b) => (a.answeredAt ?? 0) - (b.answeredAt ?? 0));
  for (const account of crowded) {
    const own = waiting.filter((request) => request.account === account);
    relieve(own, account.unread - settings.unread.perAddress, now, tally);
  }
  const { total } = settings.unread;
  if (unread > total) {
    // The address that holds most goes first.
    const order = waiting.toSorted((a, b) => b.account.unread - a.account.unread);
    relieve(order, unread - total + Math.floor(total / FREED), now, tally);
  }
  return { unread, reserved, watches };
}

/** Gives up a request that never ends, or whose response nobody reads. */
function lookAt(request: OpenRequest, now: number, { settings, mostTime, tally }: LookOptions): void {
  const { exchange, connection } = request;
  if (!exchange.response.writableEnded) {
    if (request.watch !== undefined) {
      if (now >= request.watch.until) request.watch.end();
      return;
    }
    if (now - exchange.startedAt < mostTime) return;
    // Whatever the request waits for has a timeout of its own, which should have ended it long ago.
    giveUp(request, 'unfinished');
    closeConnection(connection);
    tally.givenUp.unfinished += 1;
    return;
  }
  request.answeredAt ??= now;
  // The work for a request that was answered at its deadline may still be reading from a store.
  if (!request.unsettled) request.reserved = 0;
  const since = now - request.answeredAt;
  const stalled = now - Math.max(request.answeredAt, connection.movedAt);
  const failed = exchange.record.fault !== undefined && !request.behind;
  const patience = failed ? Math.min(LEAST_WAIT, settings.writeTimeout) : settings.writeTimeout;
  if (exchange.response.writableFinished) {
    const stream = streamOf(exchange.request);
    if (stream === undefined || since < REST_TIME) return;
    // RFC 9113, 8.1: the response is complete, and the rest of the request is not wanted.
    exchange.givenUp('unfinished');
    stream.close(constants.NGHTTP2_NO_ERROR);
  } else if (stalled > patience || since > settings.writeTimeout * MOST_TIMEOUTS) {
    giveUp(request, 'unread');
    // Nothing at all leaves the connection: its other streams wait in vain, too. A proxy's may be those of others.
    if (stalled > (connection.account === undefined ? settings.writeTimeout : patience)) closeConnection(connection);
  } else {
    return;
  }
  tally.givenUp[exchange.record.givenUp as 'unread' | 'unfinished'] += 1;
}

/** Gives up responses, in this order, until `excess` bytes fewer wait. */
function relieve(requests: readonly OpenRequest[], excess: number, now: number, tally: HoldingTally): void {
  let left = excess;
  for (const request of requests) {
    if (left <= 0) return;
    if (now - (request.answeredAt ?? now) < LEAST_WAIT) continue;
    left -= request.waiting;
    giveUp(request, 'unread');
    tally.givenUp.unread += 1;
  }
}

/** Notes how many bytes of a connection the kernel has taken; those that it has not are in the queues subtracted. */
function noteProgress(connection: Connection, now: number): void {
  const socket = connection.socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null };
  const moved = socket.bytesWritten - socket.writableLength - (socket._handle?.writeQueueSize ?? 0);
  if (Math.abs(moved - connection.moved) < PROGRESS) return;
  connection.moved = moved;
  connection.movedAt = now;
}
