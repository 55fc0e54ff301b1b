/**
 * A circuit breaker for one server. It opens after three store calls or heartbeats in a row without an answer, or at
 * once when it is tripped. While it is open nobody waits for the server. A heartbeat that is answered closes it.
 */
export interface Breaker {
  /** Since when it has been open, on the clock of `performance.now()`; undefined while it is closed. */
  readonly openSince: number | undefined;
  /**
   * The server answered a store call, which clears the failures. An open breaker stays open: the answer may be an old
   * one.
   */
  answered(): void;
  /** The server did not answer. */
  silent(reason: string): void;
  /** Opens the breaker at once, whatever came before. */
  trip(reason: string): void;
  /** The server answered a heartbeat, or is newly connected. */
  close(): void;
}

/** What is called when the breaker opens or closes. */
export interface BreakerEvents {
  opened(reason: string): void;
  closed(openMs: number): void;
}

/** Store calls or heartbeats in a row without an answer at which the breaker opens. */
const FAILURES = 3;

/** A breaker, closed at first. */
export function createBreaker(events: BreakerEvents): Breaker {
  let failures = 0;
  let openSince: number | undefined;
  const breaker: Breaker = {
    get openSince() {
      return openSince;
    },
    answered() {
      failures = 0;
    },
    silent(reason) {
      failures++;
      if (failures >= FAILURES) breaker.trip(reason);
    },
    trip(reason) {
      if (openSince !== undefined) return;
      openSince = performance.now();
      events.opened(reason);
    },
    close() {
      failures = 0;
      if (openSince === undefined) return;
      const openMs = performance.now() - openSince;
      openSince = undefined;
      events.closed(openMs);
    },
  };
  return breaker;
}
