/** Which engine a decision goes to. */
import type { EngineProcess } from '../processes/engine-process.ts';
import { PASSING_LENGTH } from '../worker/messages.ts';
import type { Job } from './job.ts';

/** An engine may be given a second job if its only one is over within this many milliseconds. */
const PREFETCH_HORIZON = 20;

/**
 * The engines that could take one of `waiting` decisions now: those that work on fewer jobs than they may. When there
 * are none, also those whose only job a short decision may pass, and when many wait, those that are nearly done with
 * their only job, so that they need not wait for the next; with few waiting, a job that is bound to an engine early
 * could find another free before.
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

/** Whether an engine that is free has a decision's model and takes it now. */
export function takes(
  { models, passable }: EngineProcess,
  { revision, shape }: Pick<Job, 'revision' | 'shape'>,
): boolean {
  const isShort = shape.premiseLength + shape.choicesLength <= PASSING_LENGTH;
  return models.has(revision.key) && (isShort || !passable);
}

/**
 * The engine, of those that take a job, that will be done with it first; `costOn` estimates the
 * job alone, milliseconds.
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
