/**
 * Limits how many calls are made again: a store of tokens as in gRPC's own throttling of retries (gRFC A6). A failure
 * takes one, a success gives a tenth back, and while half of them or less are left, no call is made again: retries must
 * not add to the load of a server in trouble.
 */
export interface RetryThrottle {
  succeeded(): void;
  /** Takes note of a failure. Returns whether the call may be made again. */
  failed(): boolean;
}

/** Tokens of the store, and how many a success gives back: the values of the examples in gRFC A6. */
const CAPACITY = 10;
const GAIN = 0.1;

/** A throttle with all its tokens. */
export function createRetryThrottle(): RetryThrottle {
  let tokens = CAPACITY;
  return {
    succeeded() {
      tokens = Math.min(CAPACITY, tokens + GAIN);
    },
    failed() {
      tokens = Math.max(0, tokens - 1);
      return tokens > CAPACITY / 2;
    },
  };
}
