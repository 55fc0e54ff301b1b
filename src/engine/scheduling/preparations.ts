/**
 * Catalogs' choices on their way into every engine's cache. Each engine has a lane of its own, in which owners take turns; its work is cut into short
 * pieces, and while decisions wait, the lane gets as much of the engine's time as they do and no more.
 */
import type { JobTerms, PrepareOutcome, ScoreJob } from '../engine.ts';
import {
  DeadlineTooShort,
  EngineFailed,
  EngineOverloaded,
  JobAbandoned,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../errors.ts';
import type { Revision } from '../packages/revisions.ts';
import type { Death } from '../processes/deaths.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import { type ChoiceSet, choiceSetOf } from '../processes/known-choice-sets.ts';
import type { JobResult } from '../worker/messages.ts';
import { createDeadlines } from './deadlines.ts';
import { createPreparationLane, type LaneItem, type PreparationLane } from './preparation-lane.ts';

/** What is to be prepared. */
export type PrepareRequest = Pick<ScoreJob, 'model' | 'revision' | 'choices'>;

/** What the lanes need of the pool. */
export interface PreparationsOptions {
  /** Numbers jobs; common to decisions and preparations. */
  nextJob(): number;
  /** Milliseconds that one of these choices takes. */
  choiceCost(revision: Revision, choices: readonly string[]): number;
  /** Hears of a preparation that is given up because an engine ended with it. */
  abandoned(death: Death): void;
  /** Preparations that may be under way at a time, and those of one owner. */
  readonly most: number;
  readonly mostOfOwner: number;
}

/** The lanes of all engines. */
export interface Preparations {
  /** Prepares in these engines; at least one. */
  prepare(
    revision: Revision,
    request: PrepareRequest,
    terms: JobTerms,
    engines: readonly EngineProcess[],
  ): Promise<PrepareOutcome>;
  /** Sends the engine its next piece if its lane has one and it is the lane's turn. */
  sendNext(process: EngineProcess, decisionsWait: boolean): boolean;
  /** An engine was given a decision of this cost, which counts towards the lane's next turn. */
  yielded(process: EngineProcess, cost: number): void;
  /** Whether the job was one of these. */
  finished(process: EngineProcess, job: number, result: JobResult): boolean;
  /** The process that had the job has ended, and perhaps because of it: then `death` says how. */
  ended(job: number, death: Death | undefined): void;
  /** A process has ended; after what it had in flight. */
  lost(process: EngineProcess): void;
  /** Whether the process has pieces to do that are still wanted. */
  waitFor(process: EngineProcess): boolean;
  /** Fails what is under way for a model that cannot be served any more. */
  unavailable(revision: Revision): void;
  readonly size: number;
}

/** One engine's share of a preparation: the next piece of what it has still to encode. */
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
  parts: number;
  prepared: number;
  answered: boolean;
  resolve(outcome: PrepareOutcome): void;
  reject(error: Error): void;
}

/** A piece takes about this long in each lane, milliseconds: a short decision behind it waits no longer. */
const pieceCost = 20;

/** Lanes without work. */
export function createPreparations(options: PreparationsOptions): Preparations {
  const { nextJob, choiceCost, abandoned, most, mostOfOwner } = options;
  const lanes = new Map<EngineProcess, PreparationLane<Part>>();
  const inFlight = new Map<number, { readonly process: EngineProcess; readonly piece: Part }>();
  let pieces = 0;
  const open = new Set<Preparation>();
  const deadlines = createDeadlines<Preparation>((preparation) => fail(preparation, new JobDeadlinePassed()));

  const answer = (preparation: Preparation, give: () => void): void => {
    if (preparation.answered) return;
    preparation.answered = true;
    open.delete(preparation);
    deadlines.remove(preparation);
    give();
  };

  const fail = (preparation: Preparation, error: Error): void => {
    answer(preparation, () => preparation.reject(error));
  };

  /** One engine is done with its part, one way or the other. */
  const endPart = (preparation: Preparation, done: boolean): void => {
    preparation.parts--;
    if (done) preparation.prepared++;
    if (preparation.parts > 0) return;
    if (preparation.prepared > 0) answer(preparation, () => preparation.resolve({ kind: 'prepared' }));
    else fail(preparation, new EngineFailed('no engine could encode the choices'));
  };

  /** The piece of a preparation that begins at `next`, as it waits in an engine's lane. */
  const pieceOf = (preparation: Preparation, next: number, process: EngineProcess): Part => {
    const { choices, cost, owner } = preparation;
    const each = cost / choices.length;
    const size = Math.max(1, Math.floor((pieceCost * process.concurrency) / each));
    const end = Math.min(choices.length, next + size);
    const sequence = ++pieces;
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
  };

  const busy = (process: EngineProcess): boolean => {
    for (const each of inFlight.values()) if (each.process === process) return true;
    return false;
  };

  const openOf = (owner: string): number => {
    let count = 0;
    for (const preparation of open) if (preparation.owner === owner) count += 1;
    return count;
  };

  return {
    get size() {
      return open.size;
    },
    prepare(revision, { choices }, terms, engines) {
      const { deadline, tenant: owner } = terms;
      const cost = choices.length * choiceCost(revision, choices);
      // Decisions may take every other turn.
      const left = deadline - performance.now();
      if (2 * cost > left) return Promise.reject(new DeadlineTooShort(2 * cost, left));
      const expected =
        2 * Math.max(...engines.map((process) => lanes.get(process)?.costUntilDone(owner, cost) ?? cost));
      const full = open.size >= most || openOf(owner) >= mostOfOwner;
      if (full || expected > left) {
        return Promise.reject(new EngineOverloaded(Math.max(1, Math.ceil(expected / 1000))));
      }
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
      open.add(preparation);
      deadlines.add(preparation);
      for (const process of engines) {
        const lane = lanes.get(process) ?? createPreparationLane<Part>();
        lanes.set(process, lane);
        lane.add(pieceOf(preparation, 0, process));
      }
      const leave = (): void => fail(preparation, new JobCanceled());
      terms.signal.addEventListener('abort', leave, { once: true });
      return promise.finally(() => terms.signal.removeEventListener('abort', leave));
    },
    sendNext(process, decisionsWait) {
      const lane = lanes.get(process);
      if (lane === undefined || (decisionsWait && lane.debt > 0)) return false;
      const piece = lane.take(({ preparation }) => !preparation.answered);
      if (piece === undefined) {
        if (!busy(process)) lanes.delete(process);
        return false;
      }
      const { preparation, next, end, cost } = piece;
      const { choiceSet, choices, deadline } = preparation;
      lane.debt = cost;
      const job = nextJob();
      inFlight.set(job, { process, piece });
      const timeLeft = deadline - performance.now();
      const message = {
        kind: 'prepare',
        job,
        key: choiceSet.key,
        part: choiceSet.part,
        choices: choices.slice(next, end),
        timeLeft,
      } as const;
      process.send(message, cost);
      return true;
    },
    yielded(process, cost) {
      const lane = lanes.get(process);
      if (lane !== undefined) lane.debt -= cost;
    },
    finished(process, job, result) {
      const piece = inFlight.get(job)?.piece;
      if (piece === undefined) return false;
      inFlight.delete(job);
      const { preparation, end } = piece;
      const { choices, choiceSet } = preparation;
      if (result.kind === 'choice_too_long') {
        answer(preparation, () => preparation.resolve(result));
      } else if (result.kind !== 'prepared') {
        endPart(preparation, false);
      } else if (end >= choices.length) {
        process.choiceSets.add(choiceSet);
        endPart(preparation, true);
      } else if (!preparation.answered) {
        // Behind the owner's other preparations: they take turns.
        lanes.get(process)?.add(pieceOf(preparation, end, process));
      }
      return true;
    },
    ended(job, death) {
      const piece = inFlight.get(job)?.piece;
      if (piece === undefined) return;
      inFlight.delete(job);
      if (death === undefined) {
        endPart(piece.preparation, false);
        return;
      }
      abandoned(death);
      // In no other engine either.
      fail(piece.preparation, new JobAbandoned(death.reason));
    },
    lost(process) {
      const lane = lanes.get(process);
      lanes.delete(process);
      for (const { preparation } of lane?.all() ?? []) endPart(preparation, false);
    },
    waitFor: (process) =>
      busy(process) || (lanes.get(process)?.all() ?? []).some(({ preparation }) => !preparation.answered),
    unavailable(revision) {
      for (const preparation of open) {
        if (preparation.revision !== revision) continue;
        fail(preparation, new ModelUnavailable(`${revision.name} cannot be served now`, 1));
      }
    },
  };
}
