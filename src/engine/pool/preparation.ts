/**
 * Encodes the choices of a catalog in every engine before decisions ask for them. Each engine is sent one short piece
 * after the other, as jobs of the one queue, so decisions go in between.
 */
import type { JobTerms, PrepareOutcome } from '../engine.ts';
import { EngineFailed, JobAbandoned, JobCanceled, ModelUnavailable } from '../errors.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import { type Answered, createJob, type Job } from './job.ts';

/** The choices of a catalog, to be encoded for its owner. */
export interface Preparation extends Pick<Job, 'revision' | 'shape' | 'choiceList' | 'arrived'> {
  readonly choices: readonly string[];
  /** Milliseconds that all of them take in one engine. */
  readonly cost: number;
  readonly terms: JobTerms;
}

/** A piece takes about this many milliseconds, so a short decision waits no longer behind one. */
const PIECE_COST = 20;

/** The job, numbered `id`, that encodes the choices from the place `next` on in the process of a slot. */
export function pieceOf(preparation: Preparation, slot: EngineSlot, next: number, id: number): Job {
  const { choices, cost, ...facts } = preparation;
  const each = cost / choices.length;
  const size = Math.max(1, Math.floor((PIECE_COST * slot.concurrency) / each));
  const piece = choices.slice(next, next + size);
  return createJob({
    ...facts,
    id,
    slot,
    task: { kind: 'prepare', choices: piece, all: choices.length },
    cost: piece.length * each,
    after: (choices.length - next - piece.length) * each,
  });
}

/**
 * Prepares in these slots; at least one. A choice that is too long in one engine, and an engine that ends perhaps
 * because of a piece, end the whole; engines that fail otherwise are done without while there are others. `perform`
 * does a job until the signal is aborted. Rejects with the errors of errors.ts.
 */
export async function prepareIn(
  slots: readonly EngineSlot[],
  preparation: Preparation,
  nextId: () => number,
  perform: (job: Job, signal: AbortSignal) => Promise<Answered>,
): Promise<PrepareOutcome> {
  const stop = new AbortController();
  const signal = AbortSignal.any([preparation.terms.signal, stop.signal]);
  const prepareOne = async (slot: EngineSlot): Promise<PrepareOutcome> => {
    try {
      for (let next = 0; next < preparation.choices.length; ) {
        if (signal.aborted) throw new JobCanceled();
        const job = pieceOf(preparation, slot, next, nextId());
        const result = await perform(job, signal);
        if (result.kind === 'choice_too_long') {
          stop.abort();
          return result;
        }
        next += job.task.choices.length;
      }
      return { kind: 'prepared' };
    } catch (error) {
      // The other engines stop as well: the choices might end them, too.
      if (error instanceof JobAbandoned) stop.abort();
      throw error;
    }
  };
  const parts = await Promise.allSettled(slots.map(prepareOne));
  const outcomes = parts.flatMap((part) => (part.status === 'fulfilled' ? part.value : []));
  const errors: readonly unknown[] = parts.flatMap((part) => (part.status === 'rejected' ? part.reason : []));
  const problem = outcomes.find(({ kind }) => kind !== 'prepared');
  if (problem !== undefined) return problem;
  const ofAll =
    errors.find((error) => error instanceof JobAbandoned) ??
    errors.find((error) => !(error instanceof EngineFailed || error instanceof ModelUnavailable));
  if (ofAll !== undefined || outcomes.length === 0) throw ofAll ?? errors[0];
  return { kind: 'prepared' };
}
