/**
 * How many requests are in progress at a time: few at first, more for as long as all are answered, half as many when
 * the service refuses one, and none while it asks to wait (additive increase, multiplicative decrease). At this pace
 * the service is asked until a text has an answer, or an error of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome } from './decided-lines.ts';
import type { Asked, Attempt, DecidingClient } from './deciding-client.ts';

/** One place among the requests in progress. */
export interface Turn {
  /** The request was answered: more may be sent at a time. */
  answered(): void;
  /** The request was refused or lost: there were too many. `wait`: milliseconds in which no other may begin. */
  refused(wait: number): void;
}

/** Decides when the next request may begin. */
interface Pace {
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

/**
 * Asks about one text; `place` is its place among all. Throws Error if no text can be decided, or the signal's reason.
 */
export type Insist = (asked: Asked, place: number) => Promise<Outcome>;

/** Milliseconds before a text is asked about again where the service names no wait; doubles with each attempt. */
const FIRST_WAIT_MS = 250;
/** Milliseconds that this wait may grow to. */
const MOST_WAIT_MS = 10_000;
/** Milliseconds of the longest `Retry-After` that is waited for: a longer one is for the operator to decide about. */
const LONGEST_PAUSE_MS = 300_000;
/** Attempts after which a text is given up if they were lost while others got answers: it may be the cause. */
const MOST_LOST = 6;

/** `patience`: milliseconds without an answer to any text after which the command gives up. */
export function createInsistence(client: DecidingClient, pace: Pace, patience: number, signal: AbortSignal): Insist {
  let answeredAt = Number.NEGATIVE_INFINITY;

  return async (asked, place) => {
    const began = performance.now();
    for (let attempts = 1; ; attempts++) {
      const turn = await pace.turn(place);
      const attempt = await client.attempt(asked, signal);
      if (attempt.kind === 'answered' || attempt.kind === 'refused') {
        answeredAt = performance.now();
        turn.answered();
        return attempt;
      }
      if (attempt.kind === 'hopeless') throw new Error(attempt.message);
      const wait = attempt.kind === 'busy' ? attempt.retryAfter : undefined;
      turn.refused(wait ?? 0);
      if (wait !== undefined && wait > LONGEST_PAUSE_MS)
        throw new Error(`the service asks to wait ${wait / 1000} seconds: ${wordsOf(attempt)}`);
      if (isItsOwn(attempt, attempts, began)) return { kind: 'refused', refusal: attempt.refusal };
      if (wait === undefined) await pause(attempts);
    }
  };

  /** Whether the text itself is at fault, since others get answers. Throws Error if no text got one for too long. */
  function isItsOwn(attempt: Extract<Attempt, { kind: 'busy' | 'lost' }>, attempts: number, began: number): boolean {
    const isImpatient = performance.now() - began > patience;
    if (answeredAt > began) return attempt.kind === 'lost' ? attempts >= MOST_LOST : isImpatient;
    const never = answeredAt === Number.NEGATIVE_INFINITY;
    if (attempt.kind === 'lost' && !attempt.contact && never) throw new Error(`nobody answers: ${wordsOf(attempt)}`);
    if (isImpatient) throw new Error(`no text got an answer for ${patience / 1000} seconds: ${wordsOf(attempt)}`);
    return false;
  }

  async function pause(attempts: number): Promise<void> {
    const most = Math.min(MOST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1));
    // The random part keeps the texts that wait from coming back at the same moment.
    await sleep(most * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {
      throw signal.reason;
    });
  }
}

function wordsOf({ refusal: { code, message } }: Extract<Attempt, { kind: 'busy' | 'lost' }>): string {
  return `${code}: ${message}`;
}
