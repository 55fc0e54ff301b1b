/**
 * Says when a server is to be left alone: after some calls in a row that it failed at. A call that ran out of its caller's time counts if no other was
 * answered while it waited and if that was long enough to mean something. Whether the server is well again is for the canary to find out.
 */
export interface Breaker {
  succeeded(): void;
  /** `since`: when the call began, on the clock of `performance.now()`. */
  failed(kind: 'failure' | 'out_of_time', since: number, reason: string): void;
  /** Begins anew. */
  reset(): void;
}

const tolerated = 5;
const meaningful = 1000;

/** `open` is called once, at the last tolerated failure, and again only after a reset. */
export function createBreaker(open: (reason: string) => void): Breaker {
  let failures = 0;
  let lastAnswer = 0;
  return {
    succeeded() {
      failures = 0;
      lastAnswer = performance.now();
    },
    failed(kind, since, reason) {
      if (kind === 'out_of_time' && (lastAnswer > since || performance.now() - since < meaningful)) return;
      if (++failures === tolerated) open(reason);
    },
    reset() {
      failures = 0;
    },
  };
}
