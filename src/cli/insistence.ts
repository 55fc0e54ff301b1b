/** Asks the service until a text has an answer, or an error of its own, at a pace that the service allows. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome } from './decided-lines.ts';
import type { Asked, Attempt, DecidingClient } from './deciding-client.ts';
import type { Pace } from './pace.ts';

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
