/**
 * One process of an engine slot from its start to its end: what is loaded into it, and whether decisions are sent to
 * it.
 */
import type { InferenceCalls } from '../engine.ts';
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { JobResult } from '../worker/messages.ts';
import { EngineProcess, type LoadOutcome } from './engine-process.ts';
import { type Death, OVERDUE, processUsage, STUCK } from './recycling.ts';

/**
 * - `loading`: no decisions are sent to it, since a load holds up all that comes after it. What it has loaded has not
 *   been reported yet.
 * - `serving`: decisions are sent to it.
 * - `leaving`: another process has taken its place. It finishes its jobs and serves models that it alone has.
 * - `dismissed`: it was told to end when its work is done, so its end is no news.
 * - `ended`.
 */
export type RunState = 'loading' | 'serving' | 'leaving' | 'dismissed' | 'ended';

/** What a run tells its slot. */
export interface RunEvents {
  memory(resident: number, released: boolean): void;
  gone(death: Death, lost: readonly number[]): void;
}

/** A run, loading at first. */
export class ProcessRun {
  readonly process: EngineProcess;
  /** Keys of the revisions that it was told to load. */
  readonly tried = new Set<string>();
  readonly since = performance.now();
  /** Resolves when, after a start, all that is wanted has been tried. */
  begun: Promise<void> = Promise.resolve();
  /** Whether that is still to come. */
  beginning = true;
  readonly #settings: EngineSettings;
  readonly #hooks: SlotHooks;
  readonly #ended = Promise.withResolvers<void>();
  #state: RunState = 'loading';
  #loadedBytes: number | undefined;
  /** Revisions that it has loaded and that have not been reported. */
  #untold: Revision[] = [];
  #served = false;
  /** Its CPU time when it was first found to make no progress although it could run. */
  #suspectedAt: number | undefined;

  constructor(name: string, settings: EngineSettings, concurrency: number, hooks: SlotHooks, events: RunEvents) {
    this.#settings = settings;
    this.#hooks = hooks;
    this.process = new EngineProcess(name, settings, concurrency, {
      finished: (job, result, occupied) => hooks.finished(this.process, job, result, occupied),
      memory: (resident, released) => events.memory(resident, released),
      unready: (key, problems) => hooks.unready(key, problems),
      calls: (calls) => hooks.calls(calls),
      passable: () => hooks.passable(),
      gone: (death, lost) => events.gone(death, lost),
    });
  }

  get state(): RunState {
    return this.#state;
  }

  /** Whether it has ever loaded anything. */
  get served(): boolean {
    return this.#served;
  }

  /**
   * Resident bytes with its models and before any work; undefined once a model was unloaded, or loaded while it served.
   */
  get loadedBytes(): number | undefined {
    return this.#loadedBytes;
  }

  /** Milliseconds since its start. */
  get lived(): number {
    return performance.now() - this.since;
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Loads a revision. Returns whether the process can serve it now. */
  async load(revision: Revision): Promise<boolean> {
    this.tried.add(revision.key);
    const leave = await this.#hooks.turn(revision);
    // It may have ended while it waited, which says nothing about the revision.
    const loaded = this.#state !== 'ended' && (await this.#loadInTurn(revision));
    leave();
    return loaded;
  }

  async #loadInTurn(revision: Revision): Promise<boolean> {
    let outcome = await this.process.load(revision);
    const misfit = outcome.kind === 'ready' ? this.#hooks.misfit(this.process, revision) : undefined;
    if (misfit !== undefined) {
      this.process.unload(revision.key);
      outcome = { kind: 'failed', problems: [misfit.problem], excess: misfit.excess };
    }
    if (outcome.kind === 'ready') {
      this.#served = true;
      this.#loadedBytes = this.beginning ? this.process.resident : undefined;
    }
    if (outcome.kind === 'ready' && this.#state !== 'serving') this.#untold.push(revision);
    else this.#hooks.loaded(this.process, revision, outcome);
    return outcome.kind === 'ready';
  }

  unload(key: string): void {
    if (this.process.models.has(key)) this.#loadedBytes = undefined;
    this.process.unload(key);
  }

  /** Loads what `next` returns, until it returns nothing more. Returns how many loads succeeded. */
  async loadEach(next: () => Revision | undefined): Promise<number> {
    let loaded = 0;
    for (let each = next(); each !== undefined && this.#state !== 'ended'; each = next()) {
      if (await this.load(each)) loaded++;
    }
    return loaded;
  }

  /** Takes no decisions until `serve` is called. */
  pause(): void {
    this.#state = 'loading';
  }

  /** Takes decisions, and reports what it has loaded. */
  serve(): void {
    this.#state = 'serving';
    const untold = this.#untold;
    this.#untold = [];
    for (const revision of untold) this.#hooks.loaded(this.process, revision, { kind: 'ready' });
    this.#hooks.rollOut();
  }

  /** Leaves the models that `next` has loaded to `next`. */
  giveWayTo(next: ProcessRun): void {
    this.#state = 'leaving';
    this.process.cede(next.process.models.keys());
  }

  /** Ends a process that serves nothing any more. */
  dismiss(): void {
    this.#state = 'dismissed';
    this.process.drain();
  }

  /** Takes note of the end of its process. */
  end(): void {
    this.#state = 'ended';
  }

  /** Resolves `ended`; called when everything else has been told of the end. */
  settle(): void {
    this.#ended.resolve();
  }

  /** Ends the process if it is stuck, in its work or in its end. `heldUp`: see `EngineSlot.check`. */
  check(heldUp: number): void {
    // Meanwhile the process could not be heard, and perhaps could not run: that is no silence of its own.
    this.process.excuse(heldUp);
    if (this.#isStuck()) this.process.kill(this.process.ending ? OVERDUE : STUCK);
  }

  /** Whether the process has something to do, can have a core and makes no progress. */
  #isStuck(): boolean {
    const { loading, milliseconds } = this.process.silence();
    const bound = loading ? this.#settings.loadStuckAfterMs : this.#settings.stuckAfterMs;
    const usage = milliseconds > bound ? processUsage(this.process.pid ?? 0) : undefined;
    if (usage?.runnable !== true) {
      this.#suspectedAt = undefined;
      return milliseconds > bound;
    }
    // It would run if it got a core. Starting another would load a busy machine even more, so only CPU time without
    // progress counts.
    this.#suspectedAt ??= usage.cpu;
    return usage.cpu - this.#suspectedAt > bound / 4;
  }
}

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
  /**
   * Resolves when the process may load a revision: others that load it for the first time leave it what they make. What
   * is returned is to be called when the load has ended.
   */
  turn(revision: Revision): Promise<() => void>;
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
