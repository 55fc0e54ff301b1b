/** Which engine a decision goes to. */
import type { EngineProcess } from '../processes/engine-process.ts';
import { PASSING_LENGTH } from '../worker/messages.ts';
import type { Job } from './job.ts';

/** An engine may be given a second job if its only one ends within this many milliseconds. */
const PREFETCH_HORIZON = 20;

/**
 * The engines that could take one of `waiting` decisions now: those that work on fewer jobs than they may. If there are
 * none, those whose only job a short decision may pass and, if many decisions wait, those that are nearly done with
 * their only job, so that they need not wait for the next. With few waiting, another engine could become free before
 * the one to which the job had been bound early.
 */
export function freeEngines(engines: readonly EngineProcess[], waiting: number): readonly EngineProcess[] {
  const idle = engines.filter(({ inFlight, concurrency }) => inFlight < concurrency);
  if (idle.length > 0) return idle;
  const many = waiting > engines.length;
  return engines.filter(
    (process) =>
      process.concurrency === 1 &&
      process.inFlight === 1 &&
      (process.passable || (many && process.remaining() <= PREFETCH_HORIZON)),
  );
}

/**
 * Whether a free engine has loaded the model of a decision and takes it now. One that reads a long text takes only
 * short decisions.
 */
export function takes(
  { models, passable }: EngineProcess,
  { revision, shape }: Pick<Job, 'revision' | 'shape'>,
): boolean {
  const isShort = shape.premiseLength + shape.choicesLength <= PASSING_LENGTH;
  return models.has(revision.key) && (isShort || !passable);
}

/**
 * Of the engines that take a job, the one that will be done with it first; `costOn` estimates the job alone, in
 * milliseconds.
 */
export function soonestDone(
  engines: readonly EngineProcess[],
  costOn: (process: EngineProcess) => number,
): EngineProcess | undefined {
  let soonest: EngineProcess | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const process of engines) {
    const expected = process.remaining() + costOn(process);
    if (expected < least) [soonest, least] = [process, expected];
  }
  return soonest;
}
