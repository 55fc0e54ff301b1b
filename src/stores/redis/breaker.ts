/** A circuit breaker for one server. */

/** What is called when the breaker opens or closes. */
export interface BreakerEvents {
  opened(reason: string): void;
  closed(openMs: number): void;
}

/** Store calls or heartbeats in a row without an answer at which the breaker opens. */
const FAILURES = 3;

/**
 * A breaker, closed at first. It opens after three store calls or heartbeats in a row without an answer, or at once
 * when it is tripped. While it is open nobody waits for the server. A heartbeat that is answered closes it.
 */
export class Breaker {
  readonly #events: BreakerEvents;
  #failures = 0;
  #openSince: number | undefined;

  constructor(events: BreakerEvents) {
    this.#events = events;
  }

  /** Since when it has been open, on the clock of `performance.now()`; undefined while it is closed. */
  get openSince(): number | undefined {
    return this.#openSince;
  }

  /**
   * The server answered a store call, which clears the failures. An open breaker stays open: the answer may be an old
   * one.
   */
  answered(): void {
    this.#failures = 0;
  }

  /** The server did not answer. */
  silent(reason: string): void {
    this.#failures++;
    if (this.#failures >= FAILURES) this.trip(reason);
  }

  /** Opens the breaker at once, whatever came before. */
  trip(reason: string): void {
    if (this.#openSince !== undefined) return;
    this.#openSince = performance.now();
    this.#events.opened(reason);
  }

  /** The server answered a heartbeat, or is newly connected. */
  close(): void {
    this.#failures = 0;
    if (this.#openSince === undefined) return;
    const openMs = performance.now() - this.#openSince;
    this.#openSince = undefined;
    this.#events.closed(openMs);
  }
}
