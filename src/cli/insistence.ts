/** Asks until a text has an answer or an error of its own, at a pace that the service allows. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome } from './decided-lines.ts';
import type { Asked, Attempt, DecidingClient } from './deciding-client.ts';
import type { Pace } from './pace.ts';

/** How one text is asked about; `place` among all. Throws Error if no text can be decided, and the signal's reason. */
export type Insist = (asked: Asked, place: number) => Promise<Outcome>;

/** The wait before a text is asked about again where the service names none: it doubles from the first to the most. */
const FIRST_WAIT_MS = 250;
const MOST_WAIT_MS = 10_000;
/** A service that asks for more has no answers for now: that is for whoever started the command to decide. */
const LONGEST_PAUSE_MS = 300_000;
/** A text whose requests are lost so often, while others get answers, may be why. */
const MOST_LOST = 6;

/** `patience`: milliseconds in which no text at all gets an answer, after which it is given up. */
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

  /**
   * Whether the text has to do with it, since others get answers meanwhile. Throws Error if none does, for too long.
   */
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
    // Not all at the same moment.
    await sleep(most * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {
      throw signal.reason;
    });
  }
}

function wordsOf({ refusal: { code, message } }: Extract<Attempt, { kind: 'busy' | 'lost' }>): string {
  return `${code}: ${message}`;
}
