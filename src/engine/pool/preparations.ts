/**
 * Encodes the choices of catalogs in every engine before decisions ask for them. Each engine has a lane, in which
 * owners take turns. The work is cut into short pieces, and while decisions wait, a lane gets at most as much of its
 * engine's time as they do.
 *
 * One file: a lane is the queue of preparations, and of nothing else.
 */
import type { CallerTerms, JobTerms, PrepareOutcome, ScoreJob } from '../engine.ts';
import {
  DeadlineTooShort,
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
  retryAfterOf,
} from '../errors.ts';
import type { Revision } from '../packages/revisions.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { Death } from '../processes/recycling.ts';
import { type ChoiceSet, choiceSetOf } from '../processes/work-in-flight.ts';
import type { JobResult } from '../worker/messages.ts';
import { type RingItem, TenantRing } from './fair-queue.ts';
import { createDeadlines, type Deadlines } from './job.ts';

/** What is to be prepared. */
export type PrepareRequest = Pick<ScoreJob, 'model' | 'revision' | 'choices'>;

/** What the lanes need of the pool. */
export interface PreparationsOptions {
  /** The number of a new job, in one sequence for decisions and preparations. */
  nextJob(): number;
  /** Milliseconds that one of a caller's choices takes. */
  choiceCost(revision: Revision, choices: readonly string[], caller: CallerTerms): number;
  /** Is told of a preparation that is given up because an engine ended while working on it. */
  abandoned(death: Death): void;
}

/** One engine's share of a preparation: the next piece of what it still has to encode. */
interface Part extends LaneItem {
  readonly preparation: Preparation;
  /** The places of the piece's choices: from `next` up to `end`. */
  readonly next: number;
  readonly end: number;
}

interface Preparation {
  readonly revision: Revision;
  readonly owner: string;
  readonly choiceSet: ChoiceSet;
  readonly choices: readonly string[];
  readonly deadline: number;
  readonly cost: number;
  /** Engines that are not done with it, and those that have encoded all of it. */
  parts: number;
  prepared: number;
  answered: boolean;
  resolve(outcome: PrepareOutcome): void;
  reject(error: Error): void;
}

/** A piece takes about this many milliseconds in each lane, so a short decision waits no longer behind one. */
const PIECE_COST = 20;
/** Preparations that may be under way at a time, and those of one owner. */
const MAX_PREPARATIONS = 256;
const MAX_OWNERS_PREPARATIONS = 64;

/** The lanes of all engines, without work at first. */
export class Preparations {
  readonly #options: PreparationsOptions;
  readonly #lanes = new Map<EngineProcess, PreparationLane<Part>>();
  readonly #inFlight = new Map<number, { readonly process: EngineProcess; readonly piece: Part }>();
  readonly #open = new Set<Preparation>();
  readonly #deadlines: Deadlines<Preparation> = createDeadlines((each) => this.#fail(each, new JobDeadlinePassed()));
  #pieces = 0;

  constructor(options: PreparationsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Prepares in these engines; at least one. Rejects with the errors of errors.ts. */
  async prepare(
    revision: Revision,
    { choices }: PrepareRequest,
    terms: JobTerms,
    engines: readonly EngineProcess[],
  ): Promise<PrepareOutcome> {
    const { deadline, tenant: owner } = terms;
    const cost = choices.length * this.#options.choiceCost(revision, choices, terms);
    this.#admit(owner, cost, deadline, engines);
    const { promise, resolve, reject } = Promise.withResolvers<PrepareOutcome>();
    const preparation: Preparation = {
      revision,
      owner,
      choiceSet: choiceSetOf(revision.key, choices, terms),
      choices,
      deadline,
      cost,
      parts: engines.length,
      prepared: 0,
      answered: false,
      resolve,
      reject,
    };
    this.#open.add(preparation);
    this.#deadlines.add(preparation);
    for (const process of engines) {
      const lane = this.#lanes.get(process) ?? createPreparationLane<Part>();
      this.#lanes.set(process, lane);
      lane.add(this.#pieceOf(preparation, 0, process));
    }
    const leave = (): void => this.#fail(preparation, new JobCanceled());
    terms.signal.addEventListener('abort', leave, { once: true });
    return await promise.finally(() => terms.signal.removeEventListener('abort', leave));
  }

  /**
   * Sends the engine its next piece if it is free, its lane has one and it is the lane's turn. Returns whether it did.
   */
  sendNext(process: EngineProcess, decisionsWait: boolean): boolean {
    const lane = this.#lanes.get(process);
    if (process.inFlight >= process.concurrency) return false;
    if (lane === undefined || (decisionsWait && lane.debt > 0)) return false;
    const piece = lane.take(({ preparation }) => !preparation.answered);
    if (piece === undefined) {
      if (!this.#isBusy(process)) this.#lanes.delete(process);
      return false;
    }
    const { preparation, next, end, cost } = piece;
    const { key, part } = preparation.choiceSet;
    lane.debt = cost;
    const job = this.#options.nextJob();
    this.#inFlight.set(job, { process, piece });
    const timeLeft = preparation.deadline - performance.now();
    const { choices } = preparation;
    const message = {
      kind: 'prepare',
      job,
      key,
      part,
      choices: choices.slice(next, end),
      all: choices.length,
    } as const;
    process.send({ ...message, timeLeft }, cost);
    return true;
  }

  /** An engine was given a decision of this cost, which counts towards the lane's next turn. */
  yielded(process: EngineProcess, cost: number): void {
    const lane = this.#lanes.get(process);
    if (lane !== undefined) lane.debt -= cost;
  }

  /** Takes note of the result of a job. Returns whether the job was a piece of a preparation. */
  finished(process: EngineProcess, job: number, result: JobResult): boolean {
    const piece = this.#inFlight.get(job)?.piece;
    if (piece === undefined) return false;
    this.#inFlight.delete(job);
    const { preparation, end } = piece;
    if (result.kind === 'choice_too_long') {
      this.#answer(preparation, () => preparation.resolve(result));
    } else if (result.kind !== 'prepared') {
      this.#endPart(preparation, false);
    } else if (end >= preparation.choices.length) {
      process.choiceSets.add(preparation.choiceSet);
      this.#endPart(preparation, true);
    } else if (!preparation.answered) {
      // Behind the owner's other preparations: they take turns.
      this.#lanes.get(process)?.add(this.#pieceOf(preparation, end, process));
    }
    return true;
  }

  /** The process that had the job has ended; `death` says how if the job may have been the cause. */
  ended(job: number, death: Death | undefined): void {
    const piece = this.#inFlight.get(job)?.piece;
    if (piece === undefined) return;
    this.#inFlight.delete(job);
    if (death === undefined) {
      this.#endPart(piece.preparation, false);
      return;
    }
    this.#options.abandoned(death);
    // The other engines stop as well: the choices might end them, too.
    this.#fail(piece.preparation, new JobAbandoned(death.reason));
  }

  /** A process has ended; called after `ended` for each job that it had in flight. */
  lost(process: EngineProcess): void {
    const lane = this.#lanes.get(process);
    this.#lanes.delete(process);
    for (const { preparation } of lane?.all() ?? []) this.#endPart(preparation, false);
  }

  /** Whether the process has pieces to do that are still wanted. */
  waitFor(process: EngineProcess): boolean {
    const waiting = this.#lanes.get(process)?.all() ?? [];
    return this.#isBusy(process) || waiting.some(({ preparation }) => !preparation.answered);
  }

  /** Fails what is under way for a model that cannot be served any more. */
  unavailable(revision: Revision): void {
    for (const preparation of this.#open) {
      if (preparation.revision !== revision) continue;
      this.#fail(preparation, new ModelUnavailable(`${revision.name} cannot be served now`, 1));
    }
  }

  /** @throws DeadlineTooShort, or EngineOverloaded if the lanes have no room or too much to do first. */
  #admit(owner: string, cost: number, deadline: number, engines: readonly EngineProcess[]): void {
    // Decisions may take half of the time, hence twice the cost.
    const left = deadline - performance.now();
    if (2 * cost > left) throw new DeadlineTooShort(2 * cost, left);
    const untilDone = engines.map((process) => this.#lanes.get(process)?.costUntilDone(owner, cost) ?? cost);
    const expected = 2 * Math.max(...untilDone);
    let owners = 0;
    for (const preparation of this.#open) if (preparation.owner === owner) owners++;
    const isFull = this.#open.size >= MAX_PREPARATIONS || owners >= MAX_OWNERS_PREPARATIONS;
    if (isFull || expected > left) throw new EngineOverloaded(retryAfterOf(expected));
  }

  /** The piece of a preparation that begins at `next`, as it waits in an engine's lane. */
  #pieceOf(preparation: Preparation, next: number, process: EngineProcess): Part {
    const { choices, cost, owner } = preparation;
    const each = cost / choices.length;
    const size = Math.max(1, Math.floor((PIECE_COST * process.concurrency) / each));
    const end = Math.min(choices.length, next + size);
    const sequence = ++this.#pieces;
    return {
      preparation,
      next,
      end,
      tenant: owner,
      cost: (end - next) * each,
      left: (choices.length - next) * each,
      rank: sequence,
      sequence,
    };
  }

  #isBusy(process: EngineProcess): boolean {
    for (const each of this.#inFlight.values()) if (each.process === process) return true;
    return false;
  }

  /** One engine is done with its part; `done` if it has encoded all of it. */
  #endPart(preparation: Preparation, done: boolean): void {
    preparation.parts--;
    if (done) preparation.prepared++;
    if (preparation.parts > 0) return;
    if (preparation.prepared > 0) this.#answer(preparation, () => preparation.resolve({ kind: 'prepared' }));
    else this.#fail(preparation, new EngineFailed('no engine could encode the choices'));
  }

  #fail(preparation: Preparation, error: Error): void {
    this.#answer(preparation, () => preparation.reject(error));
  }

  #answer(preparation: Preparation, give: () => void): void {
    if (preparation.answered) return;
    preparation.answered = true;
    this.#open.delete(preparation);
    this.#deadlines.remove(preparation);
    give();
  }
}

// One engine's lane of preparations, fair by owner: owners take turns by deficit round robin in cost, as tenants do in
// the queue of decisions. What one owner has waiting delays another by no more than the other's own work takes.

/** A piece of an owner's work that waits. */
export interface LaneItem extends RingItem {
  /** Milliseconds of all that is left of the preparation in this lane, this piece included. */
  readonly left: number;
}

/** What waits for one engine. */
interface PreparationLane<T extends LaneItem> {
  add(item: T): void;
  /** The next piece in fair order that is still wanted; those that are not are dropped. */
  take(wanted: (item: T) => boolean): T | undefined;
  /**
   * The most milliseconds of work until a new preparation of the owner, which takes `own`, is done, itself included.
   */
  costUntilDone(owner: string, own: number): number;
  all(): readonly T[];
  /** Milliseconds that waiting decisions are given before the next piece. */
  debt: number;
}

/** A lane without work. */
export function createPreparationLane<T extends LaneItem>(): PreparationLane<T> {
  const ring = new TenantRing<T>();
  return {
    debt: 0,
    add: (item) => ring.add(item),
    take(wanted) {
      for (;;) {
        const item = ring.take(() => true);
        if (item === undefined || wanted(item)) return item;
      }
    },
    costUntilDone(owner, own) {
      const left = new Map<string, number>([[owner, own]]);
      for (const item of ring.all()) left.set(item.tenant, (left.get(item.tenant) ?? 0) + item.left);
      const mine = left.get(owner) as number;
      let sum = 0;
      for (const cost of left.values()) sum += Math.min(cost, mine);
      return sum;
    },
    all: () => ring.all(),
  };
}
