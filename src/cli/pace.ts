/**
 * How many requests are under way at one time: few at first, more for as long as all are answered, half as many where
 * the service says that it is too much, and none while it asks to wait (additive increase, multiplicative decrease).
 */

/** One place among the requests under way. */
export interface Turn {
  /** It was answered: there may be more. */
  answered(): void;
  /** It was refused or lost: there are too many. `wait`: milliseconds in which nobody may begin. */
  refused(wait: number): void;
}

/** Decides when the next request may begin. */
export interface Pace {
  /** The lowest `place` among those who wait is next. Rejects with the signal's reason once it is aborted. */
  turn(place: number): Promise<Turn>;
  /** How many may be under way now. */
  readonly window: number;
}

/** Requests under way at the start. */
const FIRST = 2;

interface Waiting {
  readonly place: number;
  readonly given: PromiseWithResolvers<Turn>;
}

/** A pace. `most`: never more at one time. `clock`: milliseconds, monotonic. */
export function createPace(most: number, signal: AbortSignal, clock: () => number = () => performance.now()): Pace {
  let window = Math.min(FIRST, most);
  /** Whether nothing was refused yet: then the window doubles in the time of one answer. */
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
          // A window that is not filled says nothing about a larger one.
          if (underWay >= Math.floor(window)) window = Math.min(most, window + (first ? 1 : 1 / window));
        }),
      refused: (wait) =>
        end(() => {
          first = false;
          pausedUntil = Math.max(pausedUntil, clock() + wait);
          // What was sent before the last halving says nothing about what is sent since.
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
