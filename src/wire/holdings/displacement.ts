/** Where there is no room for another request, the one that has been arriving longest is given up for it. */
import type { Account } from './accounts.ts';
import type { Connections } from './connections.ts';
import { giveUp, type OpenRequest } from './open-request.ts';
import type { HoldingTally } from './tally.ts';

/** Milliseconds between searches for a request to displace: in a flood each search would look at all of them. */
const SEARCH_INTERVAL = 20;
/** Milliseconds that a request has to arrive before a newer one may take its place. */
const LEAST_ARRIVAL = 1000;

/** Gives up the request of an account, or of all, that has been arriving longest; returns whether there was one. */
export type Displace = (account: Account | undefined, now: number) => boolean;

/** Displacement among the requests on these connections. */
export function createDisplacement(connections: Connections, tally: HoldingTally): Displace {
  let nextSearch = 0;
  return (account, now) => {
    if (now < nextSearch) return false;
    nextSearch = now + SEARCH_INTERVAL;
    let oldest: OpenRequest | undefined;
    for (const connection of connections.values())
      for (const request of connection.requests) {
        if (account !== undefined && request.account !== account) continue;
        if (!request.arriving || request.exchange.record.givenUp !== undefined) continue;
        if (now - request.exchange.startedAt < LEAST_ARRIVAL) continue;
        if (oldest === undefined || request.exchange.startedAt < oldest.exchange.startedAt) oldest = request;
      }
    if (oldest === undefined) return false;
    giveUp(oldest, 'displaced');
    tally.givenUp.displaced += 1;
    return true;
  };
}
