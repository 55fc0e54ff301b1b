/**
 * Asks a service about many texts: few requests at a time at first, more for as long as all are answered, half as many
 * when the service refuses one, and none while it asks to wait (additive increase, multiplicative decrease). Each text
 * is asked about until it has an answer or an error of its own, and the outcomes come in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Interrupted, type Terminal } from '../command.ts';
import type { Asked, Attempt, DecidingClient, Outcome } from './deciding-client.ts';

/** Requests that may be in progress at the start. */
const FIRST = 2;

/** Decides when the next request may begin. */
export class Pace {
  readonly #most: number;
  readonly #signal: AbortSignal;
  readonly #clock: () => number;
  readonly #waiting: { readonly place: number; readonly begin: PromiseWithResolvers<number> }[] = [];
  #window: number;
  /** Whether nothing has been refused yet: until then the window doubles in the time of one answer. */
  #isFirst = true;
  #underWay = 0;
  #halvedAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** At most `most` requests at a time. `clock`: milliseconds, monotonic. */
  constructor(most: number, signal: AbortSignal, clock: () => number = () => performance.now()) {
    this.#most = most;
    this.#signal = signal;
    this.#clock = clock;
    this.#window = Math.min(FIRST, most);
    signal.addEventListener('abort', () => {
      clearTimeout(this.#timer);
      for (const { begin } of this.#waiting.splice(0)) begin.reject(signal.reason);
    });
  }

  /** How many requests may be in progress now. */
  get window(): number {
    return Math.floor(this.#window);
  }

  /**
   * Resolves when the request may begin, to the time of that; the lowest `place` that waits is next. Rejects with the
   * signal's reason once it is aborted.
   */
  turn(place: number): Promise<number> {
    if (this.#signal.aborted) return Promise.reject(this.#signal.reason);
    const begin = Promise.withResolvers<number>();
    const before = this.#waiting.findLastIndex((each) => each.place < place);
    this.#waiting.splice(before + 1, 0, { place, begin });
    this.#give();
    return begin.promise;
  }

  /** A request was answered: more may be sent at a time. */
  answered(): void {
    // An answer while the window is not full does not show that the service could take more.
    if (this.#underWay >= this.window)
      this.#window = Math.min(this.#most, this.#window + (this.#isFirst ? 1 : 1 / this.#window));
    this.#underWay--;
    this.#give();
  }

  /** A request that began then was refused or lost: there were too many. `wait`: milliseconds in which none begins. */
  refused(began: number, wait: number): void {
    const now = this.#clock();
    this.#underWay--;
    this.#isFirst = false;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + wait);
    // A request sent before the window was halved says nothing about the smaller window.
    if (began >= this.#halvedAt) {
      this.#window = Math.max(1, this.#window / 2);
      this.#halvedAt = now;
    }
    this.#give();
  }

  #give(): void {
    clearTimeout(this.#timer);
    const now = this.#clock();
    const pause = this.#pausedUntil - now;
    if (pause > 0) {
      if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#give(), pause + 1);
      return;
    }
    while (this.#waiting.length > 0 && this.#underWay < this.window) {
      this.#underWay++;
      this.#waiting.shift()?.begin.resolve(now);
    }
  }
}

/** Milliseconds before a text is asked about again where the service names no wait; doubles with each attempt. */
const FIRST_WAIT_MS = 250;
/** Milliseconds that this wait may grow to. */
const MOST_WAIT_MS = 10_000;
/** Milliseconds of the longest `Retry-After` that is waited for: a longer one is for the operator to decide about. */
const LONGEST_PAUSE_MS = 300_000;
/** Attempts after which a text is given up if they were lost while others got answers: it may be the cause. */
const MOST_LOST = 6;
/** Things that are read ahead of the first one without an outcome; bounds memory, and suffices for any `atOnce`. */
const AHEAD = 512;
/** UTF-16 code units that the things read ahead may hold together, approximately; bounds memory, too. */
const AHEAD_UNITS = 16 * 1024 * 1024;

/** How a service is asked. */
export interface Asking<T> {
  readonly client: DecidingClient;
  /** What is asked about a thing, or its outcome where that is known. */
  question(thing: T): Asked | Outcome;
  /** Roughly how many UTF-16 code units a thing holds. */
  weigh(thing: T): number;
  /** Requests at a time, at most. */
  readonly atOnce: number;
  /** Milliseconds without an answer to any text after which all is given up. */
  readonly patience: number;
  readonly signal: AbortSignal;
}

/** The outcomes of things, in their order. Throws Error if no text can be decided, or the signal's reason. */
export function outcomesOf<T>(
  source: AsyncIterator<T> | Iterator<T>,
  { client, question, weigh, atOnce, patience, signal }: Asking<T>,
): AsyncGenerator<{ readonly thing: T; readonly outcome: Outcome }> {
  const pace = new Pace(atOnce, signal);
  let answeredAt = Number.NEGATIVE_INFINITY;
  const settle = async (thing: T, place: number) => {
    const asked = question(thing);
    return { thing, outcome: 'kind' in asked ? asked : await insist(asked, place) };
  };
  return inOrder(source, settle, { things: AHEAD, weight: AHEAD_UNITS, weigh });

  async function insist(asked: Asked, place: number): Promise<Outcome> {
    const began = performance.now();
    for (let attempts = 1; ; attempts++) {
      const turn = await pace.turn(place);
      const attempt = await client.attempt(asked, signal);
      if (attempt.kind === 'answered' || attempt.kind === 'refused') {
        answeredAt = performance.now();
        pace.answered();
        return attempt;
      }
      if (attempt.kind === 'hopeless') throw new Error(attempt.message);
      const wait = attempt.kind === 'busy' ? attempt.retryAfter : undefined;
      pace.refused(turn, wait ?? 0);
      if (wait !== undefined && wait > LONGEST_PAUSE_MS)
        throw new Error(`the service asks to wait ${wait / 1000} seconds: ${wordsOf(attempt)}`);
      if (isItsOwn(attempt, attempts, began)) return { kind: 'refused', refusal: attempt.refusal };
      if (wait !== undefined) continue;
      // The random part keeps the texts that wait from coming back at the same moment.
      const most = Math.min(MOST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1));
      await sleep(most * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
  /** Whether the text itself is at fault, since others get answers. Throws Error if no text got one for too long. */
  function isItsOwn(attempt: Unanswered, attempts: number, began: number): boolean {
    const isImpatient = performance.now() - began > patience;
    if (answeredAt > began) return attempt.kind === 'lost' ? attempts >= MOST_LOST : isImpatient;
    const never = answeredAt === Number.NEGATIVE_INFINITY;
    if (attempt.kind === 'lost' && !attempt.contact && never) throw new Error(`nobody answers: ${wordsOf(attempt)}`);
    if (isImpatient) throw new Error(`no text got an answer for ${patience / 1000} seconds: ${wordsOf(attempt)}`);
    return false;
  }
}

type Unanswered = Extract<Attempt, { kind: 'busy' | 'lost' }>;

function wordsOf({ refusal: { code, message } }: Unanswered): string {
  return `${code}: ${message}`;
}

/** A controller that the operator's interrupt aborts. */
export function interruptible(terminal: Terminal): AbortController {
  const stop = new AbortController();
  void terminal.interrupted().then(() => stop.abort(new Interrupted('interrupted')));
  return stop;
}

/**
 * The results in order. Reads on while results are awaited, up to a number of things and their weight together. Throws
 * what the source throws, or, at the place of a thing whose work failed, what the work threw.
 */
export async function* inOrder<T, R>(
  source: AsyncIterator<T> | Iterator<T>,
  work: (thing: T, place: number) => Promise<R>,
  { things, weight: most, weigh }: { readonly things: number; readonly weight: number; weigh(thing: T): number },
): AsyncGenerator<R> {
  const waiting: { readonly result: Promise<R>; readonly weight: number }[] = [];
  let weight = 0;
  let place = 0;
  let ended = false;
  let reading: Promise<void> | undefined;
  const read = async (): Promise<void> => {
    const next = await source.next();
    reading = undefined;
    ended = next.done === true;
    if (next.done === true) return;
    const result = work(next.value, place++);
    // A rejection is handled where it is awaited, which does not happen if something else fails first.
    result.catch(() => {});
    const own = weigh(next.value);
    waiting.push({ result, weight: own });
    weight += own;
  };
  for (;;) {
    if (reading === undefined && !ended && waiting.length < things && weight < most) {
      reading = read();
      reading.catch(() => {});
    }
    const [head] = waiting;
    if (head === undefined && reading === undefined) return;
    const isDone = await Promise.race([
      ...(reading === undefined ? [] : [reading.then(() => false)]),
      ...(head === undefined ? [] : [head.result.then(() => true)]),
    ]);
    if (head === undefined || !isDone) continue;
    waiting.shift();
    weight -= head.weight;
    yield await head.result;
  }
}
