/**
 * How many requests are in progress at a time: few at first, more for as long as all are answered, half as many when
 * the service refuses one, and none while it asks to wait (additive increase, multiplicative decrease).
 */

/** One place among the requests in progress. */
export interface Turn {
  /** The request was answered: more may be sent at a time. */
  answered(): void;
  /** The request was refused or lost: there were too many. `wait`: milliseconds in which no other may begin. */
  refused(wait: number): void;
}

/** Decides when the next request may begin. */
export interface Pace {
  /** Waits for a turn; the lowest `place` that waits is next. Rejects with the signal's reason once it is aborted. */
  turn(place: number): Promise<Turn>;
  /** How many requests may be in progress now. */
  readonly window: number;
}

/** Requests that may be in progress at the start. */
const FIRST = 2;

interface Waiting {
  readonly place: number;
  readonly given: PromiseWithResolvers<Turn>;
}

/** A pace of at most `most` requests at a time. `clock`: milliseconds, monotonic. */
export function createPace(most: number, signal: AbortSignal, clock: () => number = () => performance.now()): Pace {
  let window = Math.min(FIRST, most);
  /** Whether nothing has been refused yet: until then the window doubles in the time of one answer. */
  let first = true;
  let underWay = 0;
  let halvedAt = Number.NEGATIVE_INFINITY;
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  const waiting: Waiting[] = [];

  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    for (const { given } of waiting.splice(0)) given.reject(signal.reason);
  });

  const give = (): void => {
    clearTimeout(timer);
    const pause = pausedUntil - clock();
    if (pause > 0) {
      if (waiting.length > 0) timer = setTimeout(give, pause + 1);
      return;
    }
    while (waiting.length > 0 && underWay < Math.floor(window)) {
      const next = waiting.reduce((a, b) => (b.place < a.place ? b : a));
      waiting.splice(waiting.indexOf(next), 1);
      underWay++;
      next.given.resolve(turnFrom(clock()));
    }
  };
  const turnFrom = (began: number): Turn => {
    let over = false;
    const end = (change: () => void): void => {
      if (over) return;
      over = true;
      change();
      underWay--;
      give();
    };
    return {
      answered: () =>
        end(() => {
          // An answer while the window is not full does not show that the service could take more.
          if (underWay >= Math.floor(window)) window = Math.min(most, window + (first ? 1 : 1 / window));
        }),
      refused: (wait) =>
        end(() => {
          first = false;
          pausedUntil = Math.max(pausedUntil, clock() + wait);
          // A request sent before the window was halved says nothing about the smaller window.
          if (began < halvedAt) return;
          window = Math.max(1, window / 2);
          halvedAt = clock();
        }),
    };
  };

  return {
    turn(place) {
      if (signal.aborted) return Promise.reject(signal.reason);
      const given = Promise.withResolvers<Turn>();
      waiting.push({ place, given });
      give();
      return given.promise;
    },
    get window() {
      return Math.floor(window);
    },
  };
}
