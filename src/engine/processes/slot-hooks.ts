/** What an engine slot asks and tells the group that it belongs to. */

import type { InferenceCalls } from '../engine.ts';
import type { Revision } from '../packages/revisions.ts';
import type { JobResult } from '../worker/messages.ts';
import type { Death } from './deaths.ts';
import type { EngineProcess, LoadOutcome } from './engine-process.ts';

/** A model that is too slow for its limits. */
export interface Misfit {
  readonly problem: string;
  /** How many times the allowed time its largest request takes. */
  readonly excess: number;
}

/** What a slot asks and tells its group. */
export interface SlotHooks {
  /** The revisions to load now, in order. */
  wanted(): readonly Revision[];
  /** All revisions that are served or to be served. */
  known(): readonly Revision[];
  /** Why a process that has loaded a revision is too slow to serve it. */
  misfit(process: EngineProcess, revision: Revision): Misfit | undefined;
  /**
   * A load ended; with the outcome `gone` if the process ended first. A success in a process that does not serve yet is
   * told when it does.
   */
  loaded(process: EngineProcess, revision: Revision, outcome: LoadOutcome): void;
  /** There may be something left to load: lets every slot check. */
  rollOut(): void;
  /** Whether choices wait to be prepared in a process. */
  preparing(process: EngineProcess): boolean;
  finished(process: EngineProcess, job: number, result: JobResult, occupied: number): void;
  /** A model that the process had loaded cannot serve for now. */
  unready(key: string, problems: readonly string[]): void;
  calls(calls: InferenceCalls): void;
  /** A process now takes short decisions that pass its job. */
  passable(): void;
  /** A process serves, and had this many resident bytes when its models were loaded. */
  serves(engine: string, loadedBytes: number): void;
  /** A process has taken the place of one that was too large. */
  replaced(): void;
  /** A process ended; `jobs` were in flight, in the order in which they were sent. */
  lost(process: EngineProcess, jobs: readonly number[], death: Death): void;
}
