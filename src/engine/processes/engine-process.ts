/**
 * One engine process from its start to its end: messages, models, work in flight, and whether decisions are sent to it.
 * One file: a class and its states.
 */
import type { ChildProcess } from 'node:child_process';
import { LRUCache } from 'lru-cache';
import type { CostProfile } from '../cost-profile.ts';
import type { InferenceCalls } from '../engine.ts';
import { limitsProblem, worstCost } from '../job-cost.ts';
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { FromEngine, JobResult, PrepareMessage, ScoreMessage, ToEngine } from '../worker/messages.ts';
import { forkEngine } from './fork-engine.ts';
import { type Death, deathOf, OVERDUE, type ProcessSize, processUsage, STUCK } from './recycling.ts';
import { WorkInFlight } from './work-in-flight.ts';

/** What processes, and the slots in which they run, ask and tell their group. */
export interface EngineListener {
  /** The revisions to load now, in order. */
  wanted(): readonly Revision[];
  /**
   * Resolves when a process may load a revision: others that load it for the first time leave it what they make. What
   * is returned is to be called when the load has ended.
   */
  turn(revision: Revision): Promise<() => void>;
  /**
   * A load ended; with the outcome `gone` if the process ended first. A success in a process that does not serve yet is
   * told when it does.
   */
  loaded(process: EngineProcess, revision: Revision, outcome: LoadOutcome): void;
  /** A model that a process had loaded cannot serve for now. */
  unready(revision: Revision, problems: readonly string[]): void;
  /** There may be something to load, or a process to replace: lets every slot check. */
  rollOut(): void;
  /** A process serves all that is wanted, and had this many resident bytes when its models were loaded. */
  serves(engine: string, loadedBytes: number): void;
  /** A process has taken the place of one that was too large. */
  replaced(): void;
  /** A job is over. `occupied`: milliseconds for which it kept the process from the next one, messages included. */
  finished(process: EngineProcess, job: number, result: JobResult, occupied: number): void;
  /** A process now takes short decisions that pass its job. */
  passable(): void;
  calls(calls: InferenceCalls): void;
  /** A process is gone; `lost` are the jobs that it had in flight, in the order in which they were sent. */
  gone(process: EngineProcess, death: Death, lost: readonly number[]): void;
}

/** A process cannot serve a model. */
interface FailedLoad {
  readonly kind: 'failed';
  readonly problems: readonly string[];
  /** The package may be sound, but its server cannot be asked. */
  readonly away?: boolean;
  /** The model is too slow here and now: its largest request took this many times the time that it may take. */
  readonly excess?: number;
}

/** How loading a model into one process ended. */
export type LoadOutcome =
  | { readonly kind: 'ready'; readonly profile: CostProfile }
  | FailedLoad
  /** The process ended before the model was loaded; `killed` if somebody else killed it. */
  | { readonly kind: 'gone'; readonly killed: boolean };

/** A model on its way into the process. */
interface Load {
  readonly revision: Revision;
  end(outcome: LoadOutcome): void;
}

/**
 * Milliseconds after which a process is killed that makes no progress in loading a model: see `EngineOptions`, whose
 * `stuckAfterMs` is for other work.
 */
export const LOAD_STUCK_AFTER = 60_000;
/** Choice sets that are remembered for one process. */
const MAX_CHOICE_SETS = 2048;

/**
 * - `loading`: no decisions are sent to it, since a load holds up all that comes after it. What it has loaded has not
 *   been reported yet.
 * - `serving`: decisions are sent to it.
 * - `leaving`: another process has taken its place. It finishes its jobs and serves models that it alone has.
 * - `dismissed`: it was told to end when its work is done, so its end is no news.
 * - `gone`: it has ended, or could not start.
 */
export type ProcessState = 'loading' | 'serving' | 'leaving' | 'dismissed' | 'gone';

/** A process, loading at first. */
export class EngineProcess {
  /** Jobs that it works on at a time. */
  readonly concurrency: number;
  /** The names of the choice sets that it is likely to have in its cache: those that were used last. */
  readonly knownChoices = new LRUCache<string, true>({ max: MAX_CHOICE_SETS });
  /** Keys of the revisions that it was told to load. */
  readonly tried = new Set<string>();
  /** Resolves when, after a start, all that is wanted has been tried; undefined from then on. */
  beginning: Promise<void> | undefined = Promise.resolve();
  /** Whether it has ever loaded anything. */
  served = false;
  /** Whether it was told to end, also when it is gone. */
  dismissed = false;
  /** Resident bytes as last reported, at the latest after each load; 0 before. */
  resident = 0;
  readonly since = performance.now();
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #settings: EngineSettings;
  readonly #listener: EngineListener;
  readonly #models = new Map<string, Revision>();
  readonly #loads = new Map<string, Load>();
  readonly #work: WorkInFlight;
  readonly #ended = Promise.withResolvers<void>();
  #state: ProcessState = 'loading';
  /** Why its owner has killed it. */
  #sentence: Death | undefined;
  /** What it has loaded and not reported. */
  #untold: (readonly [Revision, LoadOutcome])[] = [];
  /** The job that others may pass while its texts are read. */
  #reading: number | undefined;
  #released = false;
  #loadedBytes: number | undefined;
  /** When it last showed progress. */
  #lastSign = performance.now();
  /** Its CPU time when it was first found to make no progress although it could run. */
  #suspectedAt: number | undefined;

  /** Starts a process that works on `concurrency` jobs at a time. `name` is for the log. */
  constructor(name: string, settings: EngineSettings, concurrency: number, listener: EngineListener) {
    this.#name = name;
    this.concurrency = concurrency;
    this.#settings = settings;
    this.#listener = listener;
    this.#work = new WorkInFlight(concurrency);
    const child = forkEngine(name, settings);
    this.#child = child;
    child.on('message', (message) => this.#receive(message as FromEngine));
    child.on('exit', (code, signal) => this.#end(deathOf(code, signal, this.#sentence)));
    child.on('error', (error) => {
      // Without a pid it never started, and no `exit` event follows.
      if (child.pid === undefined) this.#end({ cause: 'crashed', reason: error.message });
    });
  }

  get state(): ProcessState {
    return this.#state;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Models that are loaded and whose canary was right, by their keys. */
  get models(): ReadonlyMap<string, Revision> {
    return this.#models;
  }

  /** Jobs sent and not finished. */
  get inFlight(): number {
    return this.#work.size;
  }

  /** Whether decisions may pass the job that it has. */
  get passable(): boolean {
    return this.#reading !== undefined;
  }

  /** Whether it loads a model, which holds up its decisions. */
  get loading(): boolean {
    return this.#loads.size > 0;
  }

  /** Resolves when it is gone, and everybody has been told. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Milliseconds that the work in flight will still take, by its estimates. */
  remaining(): number {
    return this.#work.remaining(performance.now());
  }

  /** What is known of its size. That it has given memory back is told once. */
  size(): ProcessSize {
    const [released, lived] = [this.#released, performance.now() - this.since];
    this.#released = false;
    return { resident: this.resident, loaded: this.#loadedBytes, lived, released };
  }

  /** Loads a revision in its turn. Never rejects. */
  async load(revision: Revision): Promise<LoadOutcome> {
    this.tried.add(revision.key);
    const leave = await this.#listener.turn(revision);
    // It may have ended while it waited, which says nothing about the revision.
    const isGone = this.#state === 'gone';
    const outcome = isGone ? { kind: 'gone' as const, killed: false } : await this.#loadInTurn(revision);
    leave();
    return outcome;
  }

  /** Loads what `next` returns, until it returns nothing more. Resolves to how many loads succeeded. */
  async loadEach(next: () => Revision | undefined): Promise<number> {
    let loaded = 0;
    for (let each = next(); each !== undefined && this.#state !== 'gone'; each = next()) {
      if ((await this.load(each)).kind === 'ready') loaded++;
    }
    return loaded;
  }

  unload(key: string): void {
    if (this.#models.delete(key)) this.#loadedBytes = undefined;
    this.#post({ kind: 'unload', key });
  }

  /** Takes no decisions until `serve` is called. */
  pause(): void {
    this.#state = 'loading';
  }

  /** Takes decisions, and reports what it has loaded. */
  serve(): void {
    this.#state = 'serving';
    for (const [revision, outcome] of this.#untold.splice(0)) this.#listener.loaded(this, revision, outcome);
    if (this.beginning === undefined && this.#loadedBytes !== undefined)
      this.#listener.serves(this.#name, this.#loadedBytes);
    this.#listener.rollOut();
  }

  /** Takes no more jobs for the models that `next` has; the jobs that it has go on. */
  giveWayTo(next: EngineProcess): void {
    this.#state = 'leaving';
    for (const key of next.models.keys()) this.#models.delete(key);
  }

  /** Lets the process end when its work is done. */
  dismiss(): void {
    if (this.#isIdle()) this.#lastSign = performance.now();
    this.#state = 'dismissed';
    this.dismissed = true;
    this.#post({ kind: 'drain' });
  }

  kill(death: Death): void {
    if (this.#state !== 'gone') this.#sentence = death;
    this.#child.kill('SIGKILL');
  }

  /** Sends a job whose estimated cost is `cost` milliseconds. */
  send(message: ScoreMessage | PrepareMessage, cost: number): void {
    if (this.#isIdle()) this.#lastSign = performance.now();
    this.#work.add(message.job, cost, performance.now());
    this.#post(message);
  }

  /** Stops a job between two graph runs; it still finishes, as canceled. */
  cancel(job: number): void {
    this.#post({ kind: 'cancel', job });
  }

  /** Lets it give back the memory that it does not use, when the jobs that it has are done. */
  release(): void {
    this.#post({ kind: 'release' });
  }

  /** Ends the process if it is stuck, in its work or in its end. `heldUp`: see `EngineSlot.check`. */
  check(heldUp: number): void {
    const now = performance.now();
    // Meanwhile the process could not be heard, and perhaps could not run: that is no silence of its own.
    this.#lastSign = Math.min(now, this.#lastSign + heldUp);
    if (this.#isStuck(now)) this.kill(this.#hasWork() ? STUCK : OVERDUE);
  }

  /** Whether the process has something to do, can have a core and makes no progress. */
  #isStuck(now: number): boolean {
    const silence = this.#isIdle() ? 0 : now - this.#lastSign;
    const bound = this.loading ? LOAD_STUCK_AFTER : this.#settings.stuckAfterMs;
    const usage = silence > bound ? processUsage(this.pid ?? 0) : undefined;
    if (usage?.runnable !== true) {
      this.#suspectedAt = undefined;
      return silence > bound;
    }
    // It would run if it got a core. Starting another would load a busy machine even more, so only CPU time without
    // progress counts.
    this.#suspectedAt ??= usage.cpu;
    return usage.cpu - this.#suspectedAt > bound / 4;
  }

  #hasWork(): boolean {
    return this.#loads.size + this.#work.size > 0;
  }

  /** Whether it has nothing to do, no work and no end: what it gets next is where its silence begins. */
  #isIdle(): boolean {
    return !this.dismissed && !this.#hasWork();
  }

  async #loadInTurn(revision: Revision): Promise<LoadOutcome> {
    const { key, folder, manifest, profile, proven, failures } = revision;
    const { largestRequestMs } = this.#settings;
    let outcome = await new Promise<LoadOutcome>((end) => {
      if (this.#isIdle()) this.#lastSign = performance.now();
      this.#loads.set(key, { revision, end });
      this.#post({ kind: 'load', key, folder, manifest, profile, proven, inDoubt: failures > 0 });
    });
    const problem = outcome.kind === 'ready' && limitsProblem(outcome.profile, manifest, largestRequestMs);
    if (outcome.kind === 'ready' && problem) {
      this.unload(key);
      const excess = worstCost(outcome.profile, manifest) / largestRequestMs;
      outcome = { kind: 'failed', problems: [problem], excess };
    }
    if (outcome.kind === 'ready') {
      this.served = true;
      this.#loadedBytes = this.beginning === undefined ? undefined : this.resident;
    }
    if (outcome.kind === 'ready' && this.#state !== 'serving') this.#untold.push([revision, outcome]);
    else this.#listener.loaded(this, revision, outcome);
    return outcome;
  }

  #post(message: ToEngine): void {
    // No error is needed for a closed channel: the end of the process is reported anyway.
    if (this.#state !== 'gone' && this.#child.connected) this.#child.send(message, () => {});
  }

  #receive(message: FromEngine): void {
    // No progress: a process that hangs in a job may still report its size.
    if (message.kind !== 'memory') this.#lastSign = performance.now();
    switch (message.kind) {
      case 'released':
      case 'memory':
        this.#released ||= message.kind === 'released';
        this.resident = message.resident;
        break;
      case 'finished': {
        if (this.#reading === message.job) this.#reading = undefined;
        const occupied = this.#work.finish(message.job, this.#lastSign);
        this.#listener.finished(this, message.job, message.result, occupied);
        break;
      }
      case 'reading':
      case 'read':
        this.#reading = message.kind === 'read' ? undefined : message.job;
        if (this.passable) this.#listener.passable();
        break;
      case 'loaded': {
        this.resident = message.resident;
        const revision = this.#loads.get(message.key)?.revision;
        // One that was retired meanwhile and has no jobs is unloaded next.
        if (revision !== undefined && !(revision.retired && revision.jobs === 0))
          this.#models.set(message.key, revision);
        this.#endLoad(message.key, { kind: 'ready', profile: message.profile });
        break;
      }
      case 'load_failed':
        this.#endLoad(message.key, { kind: 'failed', problems: message.problems, away: message.away === true });
        break;
      case 'unready': {
        const revision = this.#models.get(message.key);
        this.#models.delete(message.key);
        if (revision !== undefined) this.#listener.unready(revision, message.problems);
        break;
      }
      case 'calls':
        this.#listener.calls(message.calls);
        break;
      case 'progress':
        break;
    }
  }

  #endLoad(key: string, outcome: LoadOutcome): void {
    const load = this.#loads.get(key);
    this.#loads.delete(key);
    load?.end(outcome);
  }

  #end(death: Death): void {
    if (this.#state === 'gone') return;
    this.#state = 'gone';
    this.#models.clear();
    for (const key of [...this.#loads.keys()]) this.#endLoad(key, { kind: 'gone', killed: death.cause === 'killed' });
    this.#listener.gone(this, death, this.#work.clear());
    this.#ended.resolve();
  }
}
