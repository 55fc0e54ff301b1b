/**
 * Engine processes that serve the same models: a slot for each, the pool before them, and the loading of models into
 * them: how loads went is judged here, and failed models are tried again. One file: what a group is told is one
 * interface.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallOutcome, InferenceCalls } from '../engine.ts';
import { noCalls } from '../families/remote/calls.ts';
import { limitsProblem } from '../job-cost.ts';
import type { EngineSettings } from '../options.ts';
import { isRemote } from '../packages/manifest.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineListener, EngineProcess, LoadOutcome } from '../processes/engine-process.ts';
import { EngineSlot } from '../processes/engine-slot.ts';
import type { Death } from '../processes/recycling.ts';
import type { JobResult } from '../worker/messages.ts';
import type { Backlog } from './fair-queue.ts';
import { Pool, type Tally } from './pool.ts';

// A model has failed when engines end in a row while they load it and this much blame adds up: five crashes. A kill
// counts little, since it is seldom the model's fault; it adds up only if the model is so large that the system kills
// each engine that loads it.
const FATAL_BLAME = 30;
const CRASH_BLAME = 6;
const KILL_BLAME = 1;

// A busy machine may make a model seem twice as slow as it is. One that seems slower still is not tried again soon:
// measuring it takes long, and everything new waits meanwhile.
const CERTAIN_EXCESS = 2;

/** Milliseconds that an engine waits for another one's first load of a model. */
const LONGEST_TURN = 15_000;

/** How long a process may take to end once it has nothing to do, milliseconds. */
const ENDING_GRACE = 5000;

/** What a group is made of. */
export interface GroupOptions {
  readonly settings: EngineSettings;
  readonly revisions: Revisions;
  readonly tally: Tally;
  /** One process each, by the names that the log gives them. */
  readonly names: readonly string[];
  /** Jobs that one process works on at a time: more than 1 only where they wait for a server. */
  readonly concurrency: number;
  /** Whether the group serves a revision. */
  serves(revision: Revision): boolean;
}

/** Processes that serve the same models, with the queue in front of them. They are started at once. */
export class EngineGroup implements EngineListener {
  readonly pool: Pool;
  readonly slots: EngineSlot[] = [];
  readonly #options: GroupOptions;
  readonly #memoryWarning: MemoryWarning;
  /** The revisions that wait to be tried again. */
  readonly #retries = new Map<string, NodeJS.Timeout>();
  /** The last of the loads of a revision that no engine had loaded before: they are done in turn. */
  readonly #firstLoads = new Map<string, Promise<void>>();
  #rollingOut = Promise.resolve();
  #calls: InferenceCalls = noCalls();
  #state: 'open' | 'closed' = 'open';

  constructor(options: GroupOptions) {
    const { settings, revisions, tally, names, concurrency } = options;
    this.#options = options;
    this.#memoryWarning = new MemoryWarning(settings);
    this.pool = new Pool(settings, revisions, this.slots, tally);
    for (const name of names) this.slots.push(new EngineSlot(name, concurrency, settings, this));
  }

  /** Calls to the inference server so far. */
  get inferenceCalls(): InferenceCalls {
    return this.#calls;
  }

  /** What waits, and the milliseconds that it will take in one process. */
  backlog(): Pick<Backlog, 'jobs' | 'cost'> {
    const { jobs, cost } = this.pool.backlog();
    return { jobs, cost: cost / this.#options.concurrency };
  }

  /** Whether a live process has made the canary decision of at least one model, and what waits is being done. */
  ready(): boolean {
    const serves = this.slots.some(({ process }) => process !== undefined && process.models.size > 0);
    return serves && this.pool.standstill() < this.#options.settings.unreadyAfterMs;
  }

  /** See `EngineSlot.check`. */
  check(heldUp: number): void {
    for (const slot of this.slots) slot.check(heldUp);
  }

  /** Tries failed models again now. */
  retry(): void {
    this.#retry([...this.#retries.keys()]);
  }

  unload(key: string): void {
    this.#endWait(key);
    for (const slot of this.slots) slot.unload(key);
  }

  /** Refuses new jobs, finishes the accepted ones, ends the processes. */
  async close(): Promise<void> {
    this.#state = 'closed';
    for (const timer of this.#retries.values()) clearTimeout(timer);
    await this.pool.close();
    await Promise.all(this.slots.map((slot) => slot.close(ENDING_GRACE)));
  }

  /**
   * See `EngineListener`. Not those that failed and wait to be tried again; those that another engine is loading come
   * last.
   */
  wanted(): readonly Revision[] {
    return this.#options.revisions
      .wanted()
      .filter((revision) => this.#options.serves(revision) && !this.#retries.has(revision.key))
      .sort((a, b) => Number(this.#firstLoads.has(a.key)) - Number(this.#firstLoads.has(b.key)));
  }

  async turn({ key, proven }: Revision): Promise<() => void> {
    if (proven || this.#options.settings.cacheDir === '') return () => {};
    const before = this.#firstLoads.get(key);
    const { promise: over, resolve } = Promise.withResolvers<void>();
    this.#firstLoads.set(key, over);
    // An engine that hangs holds up the others for no longer than this.
    if (before !== undefined) await Promise.race([before, sleep(LONGEST_TURN, undefined, { ref: false })]);
    return () => {
      if (this.#firstLoads.get(key) === over) this.#firstLoads.delete(key);
      resolve();
    };
  }

  loaded(process: EngineProcess, revision: Revision, outcome: LoadOutcome): void {
    if (this.#state === 'closed') return;
    const { settings, revisions } = this.#options;
    if (outcome.kind === 'gone') {
      if (revisions.blamed(revision, outcome.killed ? KILL_BLAME : CRASH_BLAME, FATAL_BLAME)) {
        this.unready(revision, ['engine after engine ended while it was loaded']);
      } else if (this.slots.some((slot) => slot.process !== undefined)) this.#retryLater(revision);
      return;
    }
    if (outcome.kind === 'failed') {
      const { problems, excess } = outcome;
      // A slow server delays no other model, so it is tried again as soon as usual.
      const isCertain = excess !== undefined && excess > CERTAIN_EXCESS && !isRemote(revision.manifest.family);
      this.#fail(revision, problems, excess !== undefined && !isCertain, isCertain ? settings.tooSlowRetryMs : 0);
      return;
    }
    // It was retired while it was being loaded.
    if (!process.models.has(revision.key)) return;
    const slow = limitsProblem(outcome.profile, revision.manifest, settings.defaultDeadlineMs);
    if (slow !== undefined && revision.state !== 'ready')
      settings.logger.warn({ model: revision.name, problems: [slow] }, 'a model is slow here');
    revisions.succeeded(revision, outcome.profile);
    this.pool.dispatch();
  }

  unready(revision: Revision, problems: readonly string[]): void {
    this.#fail(revision, problems);
  }

  /** One slot after the other, so that the others go on deciding. */
  rollOut(): void {
    this.#rollingOut = this.#rollingOut.then(async () => {
      for (const slot of this.slots) await slot.sync();
    });
  }

  serves(engine: string, loadedBytes: number): void {
    this.#memoryWarning.note(engine, loadedBytes);
  }

  replaced(): void {
    this.#options.tally.replacements += 1;
  }

  finished(process: EngineProcess, job: number, result: JobResult, occupied: number): void {
    this.pool.finished(process, job, result, occupied);
  }

  passable(): void {
    this.pool.dispatch();
  }

  calls(calls: InferenceCalls): void {
    this.#calls = sumOf(this.#calls, calls);
  }

  gone(process: EngineProcess, death: Death, lost: readonly number[]): void {
    for (const slot of this.slots) slot.gone(process, death, lost.length);
    if (death.cause !== 'drained') this.#options.tally.restarts += 1;
    this.pool.lost(process, lost, death);
  }

  /** A model cannot serve: see `Revisions.failed`. It is tried again, not before `retryAfter` milliseconds. */
  #fail(revision: Revision, problems: readonly string[], isMeasured = false, retryAfter = 0): void {
    const { settings, revisions } = this.#options;
    const { key, name } = revision;
    if (revision.retired) return;
    if (this.slots.some(({ process }) => process?.models.has(key))) {
      settings.logger.warn({ model: name, problems }, 'an engine cannot load a model that others serve');
    } else revisions.failed(revision, problems, isMeasured);
    this.#retryLater(revision, retryAfter);
  }

  /** Ends the wait of a revision that is to be tried now, or never again. */
  #endWait(key: string): void {
    clearTimeout(this.#retries.get(key));
    this.#retries.delete(key);
  }

  #retry(keys: readonly string[]): void {
    for (const key of keys) {
      this.#endWait(key);
      for (const slot of this.slots) slot.retry(key);
    }
    this.rollOut();
  }

  #retryLater({ key, failures }: Revision, least = 0): void {
    if (this.#state === 'closed' || this.#retries.has(key)) return;
    const { longestRetryMs, modelRetryMs } = this.#options.settings;
    const usual = Math.min(longestRetryMs, modelRetryMs * 2 ** Math.max(0, failures - 1));
    this.#retries.set(key, setTimeout(() => this.#retry([key]), Math.max(least, usual)).unref());
  }
}

const MIB = 2 ** 20;

/** Warns of engines whose models alone are above the limit, and again only after all engines were below it. */
export class MemoryWarning {
  readonly #settings: Pick<EngineSettings, 'engineMemoryBytes' | 'logger'>;
  readonly #above = new Set<string>();

  constructor(settings: Pick<EngineSettings, 'engineMemoryBytes' | 'logger'>) {
    this.#settings = settings;
  }

  /** Takes note of the resident bytes of an engine that has just loaded its models. */
  note(engine: string, loaded: number): void {
    const { engineMemoryBytes: limit, logger } = this.#settings;
    if (loaded <= limit) {
      this.#above.delete(engine);
      return;
    }
    const isNews = this.#above.size === 0;
    this.#above.add(engine);
    if (!isNews) return;
    logger.warn(
      { engine, resident: loaded, limit },
      `the models alone take ${Math.ceil(loaded / MIB)} MiB, more than the ${Math.floor(limit / MIB)} MiB of UMPIRE_ENGINE_MEMORY: ` +
        'raise it, or serve fewer models with UMPIRE_MODELS',
    );
  }
}

function sumOf(a: InferenceCalls, b: InferenceCalls): InferenceCalls {
  const outcomes = { ...a.outcomes };
  for (const outcome of Object.keys(outcomes) as CallOutcome[]) outcomes[outcome] += b.outcomes[outcome];
  const tokens = { in: a.tokens.in + b.tokens.in, out: a.tokens.out + b.tokens.out };
  return { outcomes, rows: a.rows + b.rows, retries: a.retries + b.retries, seconds: a.seconds + b.seconds, tokens };
}
