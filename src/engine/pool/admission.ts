/**
 * Whether a job is taken into the queue: if it can probably be done in time and the queue has room for it. In a flood
 * most requests are refused before they are read.
 */
import type { Engine } from '../engine.ts';
import { DeadlineTooShort, EngineOverloaded, retryAfterOf } from '../errors.ts';
import type { EngineSettings } from '../options.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import type { Backlog, FairQueue } from './fair-queue.ts';
import type { Job } from './job.ts';

/** Callers without a key may fill this part of the queue, in jobs, bytes and time. */
const ANONYMOUS_SHARE = 0.8;

/** Milliseconds that an engine typically takes from its start to its first decision. */
const TYPICAL_START = 1500;

/**
 * The most that a decision which has not been read is assumed to cost, as a part of the time that its caller has left.
 */
const UNREAD_SHARE = 0.01;

/** The queue and the job that may join it. Costs and times in milliseconds. */
export interface AdmissionCase {
  readonly keyed: boolean;
  /** The bytes of the job's texts. */
  readonly bytes: number;
  /** What the job takes on one engine. */
  readonly cost: number;
  /** Cost that is served before the job or with it, on all engines together: queued and in flight. */
  readonly ahead: number;
  /** Jobs that the serving engines work on at a time, at least 1. */
  readonly atOnce: number;
  /** The time until an engine serves, if none does now. */
  readonly outage: number;
  /** The time until the job's deadline. */
  readonly timeLeft: number;
  readonly all: Backlog;
  readonly anonymous: Backlog;
  readonly maxJobs: number;
  readonly maxBytes: number;
}

/**
 * Why a job is refused: the whole seconds until it would probably be admitted, at least 1. Undefined if it can probably
 * be done before its deadline and the queue has room for it.
 */
export function refusalOf(job: AdmissionCase): number | undefined {
  const { keyed, bytes, cost, ahead, atOnce, outage, timeLeft, all, anonymous, maxJobs, maxBytes } = job;
  const share = keyed ? 1 : ANONYMOUS_SHARE;
  const wait = outage + ahead / atOnce;
  const room = share * (timeLeft - cost);
  if (wait > room || cost > timeLeft) return retryAfterOf(wait - Math.max(0, room));
  const hasRoom = (backlog: Backlog, part: number): boolean =>
    backlog.jobs + 1 <= part * maxJobs && backlog.bytes + bytes <= part * maxBytes;
  if (!hasRoom(all, 1) || (!keyed && !hasRoom(anonymous, ANONYMOUS_SHARE))) return retryAfterOf(wait / 2);
  return undefined;
}

/** `own`: what it adds to what its tenant has waiting. */
type Newcomer = Pick<AdmissionCase, 'keyed' | 'bytes' | 'cost' | 'timeLeft'> & Pick<Job, 'tenant'> & { own: number };

/** The admission before a queue whose jobs go to the processes of these slots. */
export class Admission {
  readonly #settings: Pick<EngineSettings, 'queueJobs' | 'queueBytes'>;
  readonly #queue: FairQueue<Job>;
  readonly #slots: readonly EngineSlot[];
  readonly #refusals = new RecentRefusals();

  constructor(
    settings: Pick<EngineSettings, 'queueJobs' | 'queueBytes'>,
    queue: FairQueue<Job>,
    slots: readonly EngineSlot[],
  ) {
    this.#settings = settings;
    this.#queue = queue;
    this.#slots = slots;
  }

  /**
   * Judges a job, and all that comes after it.
   * @throws EngineOverloaded if the job cannot be done in time by these engines, or has no place in the queue;
   * DeadlineTooShort if not even an idle engine could do it in time.
   */
  admit(job: Job, engines: readonly EngineProcess[]): void {
    const { keyed, bytes, tenant, terms, arrived, after, slot } = job;
    const timeLeft = terms.deadline - arrived;
    const cost = job.cost + after;
    // A job that takes too long by itself says nothing about the load: it is no overload, and no sign of a flood.
    if (cost > timeLeft) throw new DeadlineTooShort(cost, timeLeft);
    // What is done in one engine alone waits there for what its tenant has asked for before.
    const first = slot === undefined ? 0 : this.#queue.costOf(tenant, keyed);
    const retryAfter = this.#judge({ keyed, bytes, cost: first + cost, own: cost, tenant, timeLeft }, engines);
    if (retryAfter === undefined) return;
    this.#refusals.note(cost, arrived);
    throw new EngineOverloaded(retryAfter);
  }

  /** See `Engine.crowded`. */
  crowded({ tenant, keyed, deadline }: Parameters<Engine['crowded']>[0]): number | undefined {
    const engines = this.#slots.flatMap(({ process }) => process ?? []);
    const now = performance.now();
    const cheapest = this.#refusals.cheapest(now);
    const timeLeft = deadline - now;
    if (cheapest === undefined || timeLeft <= 0) return undefined;
    const cost = Math.min(cheapest, UNREAD_SHARE * timeLeft);
    return this.#judge({ keyed, bytes: 0, cost, own: cost, tenant, timeLeft }, engines);
  }

  #judge(newcomer: Newcomer, engines: readonly EngineProcess[]): number | undefined {
    const restartsIn = this.#slots.map((slot) => slot.restartsIn);
    const outage = engines.length > 0 ? 0 : Math.min(...restartsIn) + TYPICAL_START;
    const inFlight = engines.reduce((sum, process) => sum + process.remaining(), 0);
    const atOnce = engines.reduce((sum, { concurrency }) => sum + concurrency, 0);
    return refusalOf({
      ...newcomer,
      ahead: inFlight + this.#queue.costAhead(newcomer.tenant, newcomer.keyed, newcomer.own),
      atOnce: Math.max(1, atOnce),
      outage,
      all: this.#queue.backlog('all'),
      anonymous: this.#queue.backlog('anonymous'),
      maxJobs: this.#settings.queueJobs,
      maxBytes: this.#settings.queueBytes,
    });
  }
}

/**
 * This many refusals make a flood. In each second the first requests are still read and judged by their size, so the
 * end of the flood is noticed within a second.
 */
const FLOOD = 8;
const SECOND = 1000;

/**
 * The refusals of the last moments; times on the clock of `performance.now()`. In a flood nearly every request is
 * refused, and most of the cost of a refusal is reading the request. The costs of the jobs that were just refused show,
 * before the next request is read, that there is no room for it either.
 */
export class RecentRefusals {
  #since = Number.NEGATIVE_INFINITY;
  #count = 0;
  #least = 0;

  /** A job of this cost, milliseconds, was refused. */
  note(cost: number, now: number): void {
    if (now - this.#since >= SECOND) {
      this.#since = now;
      this.#count = 0;
      this.#least = cost;
    }
    this.#count += 1;
    this.#least = Math.min(this.#least, cost);
  }

  /** The least cost among them, milliseconds; undefined unless there was a flood in the current second. */
  cheapest(now: number): number | undefined {
    return now - this.#since < SECOND && this.#count >= FLOOD ? this.#least : undefined;
  }
}
