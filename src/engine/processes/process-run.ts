/**
 * One process of an engine slot from its start to its end: what is loaded into it, and whether decisions
 * are sent to it.
 */
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { Death } from './deaths.ts';
import { EngineProcess } from './engine-process.ts';
import { processUsage } from './process-usage.ts';
import type { SlotHooks } from './slot-hooks.ts';

/**
 * - `loading`: no decisions are sent to it, since a load holds up all that comes after it. What it has loaded by now
 * nobody
 *   has been told of.
 * - `serving`: decisions are sent to it.
 * - `leaving`: another process has taken its place. It finishes its jobs and serves models that it alone has.
 * - `dismissed`: it was told to end when its work is done, so its end is no news.
 * - `ended`.
 */
export type RunState = 'loading' | 'serving' | 'leaving' | 'dismissed' | 'ended';

/** Why a process that makes no progress ends. */
const STUCK: Death = { cause: 'stuck', reason: 'killed: it made no progress' };

/** What a run tells its slot. */
export interface RunEvents {
  memory(resident: number): void;
  gone(death: Death, lost: readonly number[]): void;
}

/** A run, loading at first. */
export class ProcessRun {
  readonly process: EngineProcess;
  /** Keys of the revisions that were given to it to load. */
  readonly tried = new Set<string>();
  readonly since = performance.now();
  /** Resolves when all that was wanted has been tried, after a start. */
  begun: Promise<void> = Promise.resolve();
  readonly #settings: EngineSettings;
  readonly #hooks: SlotHooks;
  readonly #ended = Promise.withResolvers<void>();
  #state: RunState = 'loading';
  #loadedBytes: number | undefined;
  /** What it has loaded and nobody has been told of. */
  #untold: Revision[] = [];
  #served = false;
  /** Its CPU time when it was first found without progress though it could run. */
  #suspectedAt: number | undefined;

  constructor(name: string, settings: EngineSettings, concurrency: number, hooks: SlotHooks, events: RunEvents) {
    this.#settings = settings;
    this.#hooks = hooks;
    this.process = new EngineProcess(name, settings, concurrency, {
      finished: (job, result, occupied) => hooks.finished(this.process, job, result, occupied),
      memory: (resident) => events.memory(resident),
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

  /** Resident bytes with its models and no work done; undefined where its models changed after it had work. */
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

  /** Loads a revision. Whether the process can serve it now. */
  async load(revision: Revision): Promise<boolean> {
    this.tried.add(revision.key);
    let outcome = await this.process.load(revision);
    const misfit = outcome.kind === 'ready' ? this.#hooks.misfit(this.process, revision) : undefined;
    if (misfit !== undefined) {
      this.process.unload(revision.key);
      outcome = { kind: 'failed', problems: [misfit.problem], excess: misfit.excess };
    }
    if (outcome.kind === 'ready') {
      this.#served = true;
      this.#loadedBytes = this.#state === 'serving' ? undefined : this.process.resident;
    }
    if (outcome.kind === 'ready' && this.#state !== 'serving') this.#untold.push(revision);
    else this.#hooks.loaded(this.process, revision, outcome);
    return outcome.kind === 'ready';
  }

  unload(key: string): void {
    if (this.process.models.has(key)) this.#loadedBytes = undefined;
    this.process.unload(key);
  }

  /** Loads what `next` names, until it names nothing more. How many loads succeeded. */
  async loadEach(next: () => Revision | undefined): Promise<number> {
    let loaded = 0;
    for (let each = next(); each !== undefined && this.#state !== 'ended'; each = next()) {
      if (await this.load(each)) loaded++;
    }
    return loaded;
  }

  /** Serves nothing until it serves again. */
  pause(): void {
    this.#state = 'loading';
  }

  /** Takes decisions, and tells what it has loaded. */
  serve(): void {
    this.#state = 'serving';
    const untold = this.#untold;
    this.#untold = [];
    for (const revision of untold) this.#hooks.loaded(this.process, revision, { kind: 'ready' });
    this.#hooks.rollOut();
  }

  /** Leaves what `next` has loaded to it. */
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

  /** Tells those that wait for its end, once all the rest is told. */
  settle(): void {
    this.#ended.resolve();
  }

  /** Ends the process if it is stuck. */
  killIfStuck(): void {
    if (!this.#isStuck()) return;
    const again = (): void => {
      if (this.#state !== 'ended' && this.#isStuck()) this.process.kill(STUCK);
    };
    // If this process itself was held up, the engine's messages may lie unread: they are read before this
    // is judged again.
    setImmediate(() => setImmediate(again));
  }

  /** Whether the process has work, can have a core and makes no progress. */
  #isStuck(): boolean {
    const { loading, milliseconds } = this.process.silence();
    const bound = loading ? this.#settings.loadStuckAfterMs : this.#settings.stuckAfterMs;
    const usage = milliseconds > bound ? processUsage(this.process.pid ?? 0) : undefined;
    if (usage?.runnable !== true) {
      this.#suspectedAt = undefined;
      return milliseconds > bound;
    }
    // It would run if it got a core. Killing it would cost the machine more than it has: only CPU time
    // without progress counts.
    this.#suspectedAt ??= usage.cpu;
    return usage.cpu - this.#suspectedAt > bound / 4;
  }
}
