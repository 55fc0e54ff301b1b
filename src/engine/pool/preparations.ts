/**
 * Catalogs' choices on their way into every engine's cache. Each engine has a lane of its own; its work is cut into short pieces, and while
 * decisions wait, the lane gets as much of the engine's time as they do and no more.
 */
import type { JobTerms, PrepareOutcome, ScoreJob } from '../engine.ts';
import {
  DeadlineTooShort,
  EngineFailed,
  EngineOverloaded,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../errors.ts';
import type { Revision } from '../revisions.ts';
import type { JobResult } from '../worker/messages.ts';
import { choiceSetOf } from './choice-sets.ts';
import { createDeadlines } from './deadlines.ts';
import type { EngineProcess } from './engine-process.ts';

/** What is to be prepared. */
export type PrepareRequest = Pick<ScoreJob, 'model' | 'revision' | 'choices'>;

/** What the lanes need of the pool. */
export interface PreparationsOptions {
  /** Numbers jobs; common to decisions and preparations. */
  nextJob(): number;
  /** Milliseconds that one of these choices takes. */
  choiceCost(revision: Revision, choices: readonly string[]): number;
  /** Preparations that may be under way at a time. */
  readonly most: number;
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
  /** A process has ended. */
  lost(process: EngineProcess): void;
  /** Fails what is under way for a model that cannot be served any more. */
  unavailable(revision: Revision): void;
  readonly size: number;
}

/** One engine's share of a preparation: what it has still to encode. */
interface Part {
  readonly preparation: Preparation;
  next: number;
}

interface Preparation {
  readonly revision: Revision;
  readonly choices: readonly string[];
  readonly deadline: number;
  readonly cost: number;
  parts: number;
  prepared: number;
  answered: boolean;
  resolve(outcome: PrepareOutcome): void;
  reject(error: Error): void;
}

/** An engine's lane. */
interface Lane {
  readonly parts: Part[];
  /** Milliseconds that decisions have coming before the next piece. */
  debt: number;
}

/** A piece takes about this long in each lane, milliseconds: a short decision behind it waits no longer. */
const pieceCost = 20;

/** Lanes without work. */
export function createPreparations({ nextJob, choiceCost, most }: PreparationsOptions): Preparations {
  const lanes = new Map<EngineProcess, Lane>();
  const inFlight = new Map<number, Part>();
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
  const endPart = ({ preparation }: Part, done: boolean): void => {
    preparation.parts--;
    if (done) preparation.prepared++;
    if (preparation.parts > 0) return;
    if (preparation.prepared > 0) answer(preparation, () => preparation.resolve({ kind: 'prepared' }));
    else fail(preparation, new EngineFailed('no engine could encode the choices'));
  };

  /** The lane's next part that somebody still waits for. */
  const nextPart = (lane: Lane): Part | undefined => {
    for (let part = lane.parts.shift(); part !== undefined; part = lane.parts.shift()) {
      if (!part.preparation.answered) return part;
    }
    return undefined;
  };

  const waiting = (process: EngineProcess): number =>
    (lanes.get(process)?.parts ?? []).reduce((sum, { preparation }) => sum + preparation.cost, 0);

  return {
    get size() {
      return open.size;
    },
    prepare(revision, { choices }, terms, engines) {
      const cost = choices.length * choiceCost(revision, choices);
      // Decisions may take every other turn.
      const expected = 2 * (cost + Math.max(...engines.map(waiting)));
      const left = terms.deadline - performance.now();
      if (2 * cost > left) return Promise.reject(new DeadlineTooShort(2 * cost, left));
      if (open.size >= most || performance.now() + expected > terms.deadline) {
        return Promise.reject(new EngineOverloaded(Math.max(1, Math.ceil(expected / 1000))));
      }
      const { promise, resolve, reject } = Promise.withResolvers<PrepareOutcome>();
      const { deadline } = terms;
      const preparation = {
        revision,
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
        const lane = lanes.get(process) ?? { parts: [], debt: 0 };
        lanes.set(process, lane);
        lane.parts.push({ preparation, next: 0 });
      }
      const leave = (): void => fail(preparation, new JobCanceled());
      terms.signal.addEventListener('abort', leave, { once: true });
      return promise.finally(() => terms.signal.removeEventListener('abort', leave));
    },
    sendNext(process, decisionsWait) {
      const lane = lanes.get(process);
      if (lane === undefined || (decisionsWait && lane.debt > 0)) return false;
      const part = nextPart(lane);
      if (part === undefined) {
        lanes.delete(process);
        return false;
      }
      const { revision, choices, cost } = part.preparation;
      const each = cost / choices.length;
      const size = Math.max(1, Math.floor((pieceCost * process.lanes) / each));
      const piece = choices.slice(part.next, part.next + size);
      part.next += piece.length;
      lane.debt = piece.length * each;
      const job = nextJob();
      inFlight.set(job, part);
      const timeLeft = part.preparation.deadline - performance.now();
      process.send({ kind: 'prepare', job, key: revision.key, choices: piece, timeLeft }, lane.debt);
      return true;
    },
    yielded(process, cost) {
      const lane = lanes.get(process);
      if (lane !== undefined) lane.debt -= cost;
    },
    finished(process, job, result) {
      const part = inFlight.get(job);
      if (part === undefined) return false;
      inFlight.delete(job);
      const { preparation } = part;
      if (result.kind === 'choice_too_long') {
        answer(preparation, () => preparation.resolve(result));
      } else if (result.kind !== 'prepared') {
        endPart(part, false);
      } else if (part.next >= preparation.choices.length) {
        process.choiceSets.add(preparation.revision.key, choiceSetOf(preparation.choices));
        endPart(part, true);
      } else if (!preparation.answered) {
        // At the end of the lane: preparations take turns.
        lanes.get(process)?.parts.push(part);
      }
      return true;
    },
    lost(process) {
      const lane = lanes.get(process);
      lanes.delete(process);
      for (const part of lane?.parts ?? []) endPart(part, false);
    },
    unavailable(revision) {
      for (const preparation of open) {
        if (preparation.revision !== revision) continue;
        fail(preparation, new ModelUnavailable(`${revision.name} cannot be served now`, 1));
      }
    },
  };
}
