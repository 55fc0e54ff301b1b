/**
 * What the bounds of the wire did, counted from the start of the process. Each kind is a label value of a metric, so
 * their number is fixed.
 */

/** The counts. Each is kept by the code that does what is counted. */
export interface HoldingTally {
  /**
   * Connections that were closed as they arrived: their address had too many, opened too many a second, or there was no
   * other to close instead.
   */
  readonly refused: { address: number; rate: number; full: number };
  /** Connections that were idle, or on which nothing moved, and were closed to make room. */
  evicted: number;
  /**
   * Requests that were given up: nobody read the response, the request never ended, or a newer one needed its place.
   */
  readonly givenUp: { unread: number; unfinished: number; displaced: number };
  /** Requests that were refused since their address sent too many; they have no line in the log. */
  beyondRate: number;
  /** Requests that their callers took back. */
  resets: number;
  /** Times that an address was not served for some seconds because it took back, or sent, too many requests. */
  blocked: number;
  /** Watches that were ended: they were old, or a newer one needed the place. */
  readonly watchesEnded: { age: number; displaced: number };
}

/** A tally that has counted nothing. */
export function createTally(): HoldingTally {
  return {
    refused: { address: 0, rate: 0, full: 0 },
    evicted: 0,
    givenUp: { unread: 0, unfinished: 0, displaced: 0 },
    beyondRate: 0,
    resets: 0,
    blocked: 0,
    watchesEnded: { age: 0, displaced: 0 },
  };
}
