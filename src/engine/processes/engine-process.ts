/** One engine process, seen from the pool: messages, models, work in flight, and its end. */
import type { ChildProcess } from 'node:child_process';
import type { CostProfile } from '../cost-profile.ts';
import type { InferenceCalls } from '../engine.ts';
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { FromEngine, JobResult, PrepareMessage, ScoreMessage, ToEngine } from '../worker/messages.ts';
import { forkEngine } from './fork-engine.ts';
import { type Death, deathOf } from './recycling.ts';
import {
  createConcurrentWork,
  createKnownChoiceSets,
  createSerialWork,
  type KnownChoiceSets,
  type WorkInFlight,
} from './work-in-flight.ts';

/** What a process tells its owner. */
export interface EngineEvents {
  /** `occupied`: milliseconds for which the job kept the process from the next one, messages included. */
  finished(job: number, result: JobResult, occupied: number): void;
  /** Resident bytes; `released`: it has just given back what it does not use. */
  memory(resident: number, released: boolean): void;
  /** A model that was loaded cannot serve for now. */
  unready(key: string, problems: readonly string[]): void;
  calls(calls: InferenceCalls): void;
  /** The process now takes short decisions that pass its job. */
  passable(): void;
  /**
   * The process is gone; `lost` are the jobs that it had in flight, in the order in which they were sent. Called once.
   */
  gone(death: Death, lost: readonly number[]): void;
}

/** How loading a model into one process ended. */
export type LoadOutcome =
  | { readonly kind: 'ready' }
  /**
   * `away`: the package may be sound, but its server cannot be asked. `excess`: the model is too slow here and now; its
   * largest request took this many times the time that it may take.
   */
  | {
      readonly kind: 'failed';
      readonly problems: readonly string[];
      readonly away?: boolean;
      readonly excess?: number;
    }
  /** The process ended before the model was loaded; `killed` if somebody else killed it. */
  | { readonly kind: 'gone'; readonly killed: boolean };

/** A model on its way into the process: first its load, then its canary decision. */
interface Load {
  profile: CostProfile | undefined;
  canaries: number;
  end(outcome: LoadOutcome): void;
}

const CANARY_TRIES = 3;
const MAX_OUTPUT_LENGTH = 2000;

/** `running`; `killed`: its owner has killed it, but it is not gone yet; `gone`: it has ended, or could not start. */
type State =
  | { readonly kind: 'running' }
  | { readonly kind: 'killed'; readonly death: Death }
  | { readonly kind: 'gone' };

/** A process, from its start to its end. All methods but `kill` do nothing once it is gone. */
export class EngineProcess {
  /** Jobs that it works on at a time. */
  readonly concurrency: number;
  readonly choiceSets: KnownChoiceSets = createKnownChoiceSets();
  readonly #child: ChildProcess;
  readonly #events: EngineEvents;
  readonly #models = new Map<string, CostProfile>();
  readonly #work: WorkInFlight;
  readonly #loads = new Map<string, Load>();
  #state: State = { kind: 'running' };
  /** The job that others may pass while its texts are read. */
  #reading: number | undefined;
  /** When it last showed progress. */
  #lastSign = performance.now();
  #draining = false;
  #resident = 0;

  /** Starts a process that works on `concurrency` jobs at a time. `name` is for the log. */
  constructor(name: string, settings: EngineSettings, concurrency: number, events: EngineEvents) {
    this.concurrency = concurrency;
    this.#events = events;
    this.#work = concurrency === 1 ? createSerialWork() : createConcurrentWork();
    const child = forkEngine(name, settings);
    this.#child = child;
    child.on('message', (message) => this.#receive(message as FromEngine));
    child.on('exit', (code, signal) => {
      this.#ended(deathOf(code, signal, this.#state.kind === 'killed' ? this.#state.death : undefined));
    });
    child.on('error', (error) => {
      // Without a pid it never started, and no `exit` event follows.
      if (child.pid === undefined) this.#ended({ cause: 'crashed', reason: error.message });
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      const fields = { engine: name, pid: child.pid, output: text.slice(0, MAX_OUTPUT_LENGTH) };
      settings.logger.warn(fields, 'an engine wrote to its error output');
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Models that are loaded and whose canary was right. */
  get models(): ReadonlyMap<string, CostProfile> {
    return this.#models;
  }

  /** Resident bytes as last reported, at the latest after each canary decision; 0 before. */
  get resident(): number {
    return this.#resident;
  }

  /** Jobs sent and not finished. */
  get inFlight(): number {
    return this.#work.size;
  }

  /** Whether it was told to end and has nothing else to do. */
  get ending(): boolean {
    return this.#draining && !this.#hasWork();
  }

  /** Whether decisions may pass the job that it has. */
  get passable(): boolean {
    return this.#reading !== undefined;
  }

  /** Whether it loads a model, which holds up its decisions. */
  get loading(): boolean {
    return this.#loads.size > 0;
  }

  /** Milliseconds that the work in flight will still take, by its estimates. */
  remaining(): number {
    return this.#work.remaining(performance.now());
  }

  /**
   * Milliseconds since the last sign of progress while there is work, or since it was told to end; 0 without anything
   * to do.
   */
  silence(): { readonly loading: boolean; readonly milliseconds: number } {
    return { loading: this.loading, milliseconds: this.#isIdle() ? 0 : performance.now() - this.#lastSign };
  }

  /** Takes `milliseconds` out of its silence. */
  excuse(milliseconds: number): void {
    this.#lastSign = Math.min(performance.now(), this.#lastSign + milliseconds);
  }

  /** Verifies and loads a model and makes its canary decision, which may be tried three times. Never rejects. */
  load({ key, folder, manifest, profile, proven, failures }: Revision): Promise<LoadOutcome> {
    if (this.#state.kind === 'gone') return Promise.resolve({ kind: 'gone', killed: false });
    return new Promise((end) => {
      if (this.#isIdle()) this.#lastSign = performance.now();
      this.#loads.set(key, { profile: undefined, canaries: 0, end });
      this.#post({ kind: 'load', key, folder, manifest, profile, proven, inDoubt: failures > 0 });
    });
  }

  unload(key: string): void {
    this.#models.delete(key);
    this.#post({ kind: 'unload', key });
  }

  /** Takes no more jobs for these models, which another process has now; the jobs that it has go on. */
  cede(keys: Iterable<string>): void {
    for (const key of keys) this.#models.delete(key);
  }

  /** Sends a job whose estimated cost is `cost` milliseconds. */
  send(message: ScoreMessage | PrepareMessage, cost: number): void {
    const now = performance.now();
    if (this.#isIdle()) this.#lastSign = now;
    this.#work.add(message.job, cost, now);
    this.#post(message);
  }

  /** Lets it give back the memory that it does not use, when the jobs that it has are done. */
  release(): void {
    this.#post({ kind: 'release' });
  }

  /** Stops a job between two graph runs; it still finishes, as canceled. */
  cancel(job: number): void {
    this.#post({ kind: 'cancel', job });
  }

  /** Lets the process end when its work is done. */
  drain(): void {
    if (this.#isIdle()) this.#lastSign = performance.now();
    this.#draining = true;
    this.#post({ kind: 'drain' });
  }

  kill(death: Death): void {
    if (this.#state.kind !== 'gone') this.#state = { kind: 'killed', death };
    this.#child.kill('SIGKILL');
  }

  #hasWork(): boolean {
    return this.#loads.size + this.#work.size > 0;
  }

  /** Whether it has nothing to do: no work, and no end. */
  #isIdle(): boolean {
    return !this.#draining && !this.#hasWork();
  }

  #post(message: ToEngine): void {
    // No error is needed for a closed channel: the end of the process is reported anyway.
    if (this.#state.kind !== 'gone' && this.#child.connected) this.#child.send(message, () => {});
  }

  #receive(message: FromEngine): void {
    // No progress: a process that hangs in a job may still report its size.
    if (message.kind !== 'memory') this.#lastSign = performance.now();
    switch (message.kind) {
      case 'released':
      case 'memory':
        this.#resident = message.resident;
        this.#events.memory(message.resident, message.kind === 'released');
        break;
      case 'finished':
        if (this.#reading === message.job) this.#reading = undefined;
        this.#events.finished(message.job, message.result, this.#work.finish(message.job, this.#lastSign));
        break;
      case 'reading':
        this.#reading = message.job;
        this.#events.passable();
        break;
      case 'read':
        this.#reading = undefined;
        break;
      case 'loaded': {
        const load = this.#loads.get(message.key);
        if (load !== undefined) load.profile = message.profile;
        this.#post({ kind: 'canary', key: message.key });
        break;
      }
      case 'load_failed':
        this.#endLoad(message.key, { kind: 'failed', problems: message.problems, away: message.away === true });
        break;
      case 'canary_made':
        this.#resident = message.resident;
        this.#canaryMade(message.key, message.problem);
        break;
      case 'unready':
        if (this.#models.delete(message.key)) this.#events.unready(message.key, message.problems);
        break;
      case 'calls':
        this.#events.calls(message.calls);
        break;
      case 'progress':
        break;
    }
  }

  #canaryMade(key: string, problem: string | undefined): void {
    const load = this.#loads.get(key);
    if (load?.profile === undefined) return;
    if (problem === undefined) {
      this.#models.set(key, load.profile);
      this.#endLoad(key, { kind: 'ready' });
    } else if (++load.canaries < CANARY_TRIES) this.#post({ kind: 'canary', key });
    else {
      this.#post({ kind: 'unload', key });
      this.#endLoad(key, { kind: 'failed', problems: [problem] });
    }
  }

  #endLoad(key: string, outcome: LoadOutcome): void {
    const load = this.#loads.get(key);
    this.#loads.delete(key);
    load?.end(outcome);
  }

  #ended(death: Death): void {
    if (this.#state.kind === 'gone') return;
    this.#state = { kind: 'gone' };
    this.#models.clear();
    for (const key of [...this.#loads.keys()]) this.#endLoad(key, { kind: 'gone', killed: death.cause === 'killed' });
    this.#events.gone(death, this.#work.clear());
  }
}
