/** Whether a job is taken into the queue: only if it can probably be done in time, and if the queue has room for it. */
import type { Backlog } from './fair-queue.ts';

/** Callers without a key may fill this part of the queue, in jobs, bytes and time. */
const anonymousShare = 0.8;

/** The queue and the job at its door. Costs and times in milliseconds. */
export interface AdmissionCase {
  readonly keyed: boolean;
  /** Of the job's texts. */
  readonly bytes: number;
  /** What the job takes on one engine. */
  readonly cost: number;
  /** Cost that is served before the job or with it, on all engines together: queued and in flight. */
  readonly ahead: number;
  /** Engines that serve, at least 1. */
  readonly engines: number;
  /** Until the first of them serves, if none does now. */
  readonly outage: number;
  /** Until the job's deadline. */
  readonly timeLeft: number;
  readonly all: Backlog;
  readonly anonymous: Backlog;
  readonly maxJobs: number;
  readonly maxBytes: number;
}

/** Admitted, or refused with the whole seconds until it would probably be admitted, at least 1. */
export type Admission = { readonly kind: 'admitted' } | { readonly kind: 'refused'; readonly retryAfter: number };

/** Judges a job. */
export function admit(job: AdmissionCase): Admission {
  const { keyed, bytes, cost, ahead, engines, outage, timeLeft, all, anonymous, maxJobs, maxBytes } = job;
  const share = keyed ? 1 : anonymousShare;
  const wait = outage + ahead / engines;
  const room = share * (timeLeft - cost);
  if (wait > room || cost > timeLeft) return refused(wait - Math.max(0, room));
  const hasRoom = (backlog: Backlog, part: number): boolean =>
    backlog.jobs + 1 <= part * maxJobs && backlog.bytes + bytes <= part * maxBytes;
  if (!hasRoom(all, 1) || (!keyed && !hasRoom(anonymous, anonymousShare))) return refused(wait / 2);
  return { kind: 'admitted' };
}

function refused(milliseconds: number): Admission {
  return { kind: 'refused', retryAfter: Math.max(1, Math.ceil(milliseconds / 1000)) };
}
