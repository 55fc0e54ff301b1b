/**
 * A place for one engine process: keeps a process running, gives it the models that are wanted, and replaces it when it
 * ends, is stuck or has grown too large.
 *
 * Loading a model holds up everything else in a process. So a process serves once it has loaded all that is wanted, and
 * what is wanted later is loaded by another one, started beside it, which then takes its place. The old one finishes
 * its jobs and ends. If the new one cannot load what the old one serves (because files have changed), the old one stays
 * and loads the new models itself.
 *
 * One file: which process a slot has, and which one takes its place, is one question.
 */
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { EngineProcess } from './engine-process.ts';
import { ProcessRun, type SlotHooks } from './process-run.ts';
import { createRecycling, type Death, OVERDUE, type Recycling, RestartTimer } from './recycling.ts';

/** What a slot is made of. */
export interface SlotOptions {
  /** What the log calls the slot. */
  readonly name: string;
  readonly settings: EngineSettings;
  /** Jobs that its process works on at a time. */
  readonly concurrency: number;
  /** The place of the process that is started beside the one that serves. */
  readonly spare: SparePlace;
  readonly hooks: SlotHooks;
}

/** A place, with a process that is started at once. */
export class EngineSlot {
  readonly #options: SlotOptions;
  /** All runs that have not ended. */
  readonly #open = new Set<ProcessRun>();
  /** The run that serves, or loads to serve; undefined while the slot waits to start one. */
  #current: ProcessRun | undefined;
  /** The run that loads beside the current one, to take its place. */
  #replacement: ProcessRun | undefined;
  /** The run whose place was taken. */
  #leaving: ProcessRun | undefined;
  #state: 'open' | 'closing' = 'open';
  readonly #restart = new RestartTimer();
  /** The wait before another process is started beside the one that serves. */
  readonly #restartBeside = new RestartTimer();
  readonly #recycling: Recycling;
  #allEnded: (() => void) | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
    const { engineMemoryBytes, recycleAfterMs } = options.settings;
    this.#recycling = createRecycling(engineMemoryBytes, recycleAfterMs);
    this.#launch();
  }

  /** The process that serves; undefined while there is none. */
  get process(): EngineProcess | undefined {
    return this.#current?.state === 'serving' ? this.#current.process : undefined;
  }

  /** That process, and its predecessor until it is dismissed. */
  get processes(): readonly EngineProcess[] {
    const before = this.#leaving?.state === 'leaving' ? [this.#leaving.process] : [];
    return this.#current?.state === 'serving' ? [this.#current.process, ...before] : before;
  }

  /** Milliseconds until a process is started, if there is none; otherwise 0. */
  get restartsIn(): number {
    return this.#current === undefined ? this.#restart.remaining : 0;
  }

  /** Loads what is wanted and has not been tried. Resolves when all of it has been. */
  async sync(): Promise<void> {
    const { hooks, spare } = this.#options;
    const run = this.#current;
    if (run === undefined || this.#state === 'closing') return;
    if (run.beginning) return await run.begun;
    if (hooks.wanted().every(({ key }) => run.tried.has(key))) return;
    if (run.process.models.size > 0) return await spare.use(() => this.#refresh(false));
    run.begun = this.#begin(run, true);
    await run.begun;
  }

  /** Lets `sync` try a revision again. */
  retry(key: string): void {
    for (const run of [this.#current, this.#replacement]) {
      if (run?.process.models.has(key) === false) run.tried.delete(key);
    }
  }

  unload(key: string): void {
    for (const run of this.#open) run.unload(key);
    this.#letGo();
  }

  /**
   * Looks for a stuck process; called often. `heldUp`: milliseconds by which the call comes late, because the serving
   * process or the whole machine stood still.
   */
  check(heldUp: number): void {
    this.#letGo();
    for (const run of this.#open) run.check(heldUp);
  }

  /** Drains and ends the process for good; kills it after `grace` milliseconds. */
  close(grace: number): Promise<void> {
    this.#state = 'closing';
    this.#restart.cancel();
    this.#restartBeside.cancel();
    if (this.#open.size === 0) return Promise.resolve();
    for (const { process } of this.#open) {
      // All jobs are done by now, so nobody waits for a model that is still being loaded.
      if (process.silence().loading && process.inFlight === 0)
        process.kill({ cause: 'drained', reason: 'ended while it loaded a model' });
      else process.drain();
    }
    return new Promise((resolve) => {
      const killer = setTimeout(() => {
        for (const { process } of this.#open) process.kill(OVERDUE);
      }, grace);
      this.#allEnded = () => {
        clearTimeout(killer);
        resolve();
      };
    });
  }

  #start(): ProcessRun {
    const { name, settings, concurrency, hooks } = this.#options;
    const run: ProcessRun = new ProcessRun(name, settings, concurrency, hooks, {
      memory: (resident, released) => this.#measured(run, resident, released),
      gone: (death, lost) => this.#gone(run, death, lost),
    });
    this.#open.add(run);
    return run;
  }

  #launch(): void {
    this.#current = this.#start();
    this.#current.begun = this.#begin(this.#current, false);
  }

  /**
   * Loads the wanted models into a process that serves nothing, and lets it serve: already before it has all of them,
   * if those that are left were loaded by others and so are loaded soon. Unless `all` is set, a model that engines have
   * ended with is loaded later, in a process beside this one.
   */
  async #begin(run: ProcessRun, all: boolean): Promise<void> {
    run.beginning = true;
    run.pause();
    const left = (): readonly Revision[] => {
      const wanted = this.#options.hooks.wanted();
      return (all ? wanted : trusted(wanted)).filter(({ key }) => !run.tried.has(key));
    };
    const isCurrent = (): boolean => run === this.#current && this.#state === 'open';
    await run.loadEach(() => {
      const next = left();
      if (isCurrent() && run.process.models.size > 0 && next.every(({ proven }) => proven)) run.serve();
      return nextOf(run, next);
    });
    if (isCurrent()) this.#serve(run);
  }

  #serve(run: ProcessRun): void {
    run.beginning = false;
    run.serve();
    if (run.loadedBytes !== undefined) this.#options.hooks.serves(this.#options.name, run.loadedBytes);
  }

  /** Dismisses a process whose place was taken, once nothing waits for it. */
  #letGo(): void {
    const run = this.#leaving;
    if (run?.state !== 'leaving') return;
    if (run.process.models.size === 0 && !this.#options.hooks.preparing(run.process)) run.dismiss();
  }

  /** Names of the revisions that a process has loaded. */
  #namesIn(run: ProcessRun): ReadonlySet<string> {
    const known = this.#options.hooks.known();
    return new Set(known.filter(({ key }) => run.process.models.has(key)).map(({ name }) => name));
  }

  /** Whether `next` has all that `before` serves, or its successors of the same name. */
  #covers(next: ProcessRun, before: ProcessRun): boolean {
    const names = this.#namesIn(next);
    return this.#options.hooks.known().every(({ key, name }) => !before.process.models.has(key) || names.has(name));
  }

  /**
   * Loads what is new, and then all that is served, in a process beside the one that serves, which then takes its
   * place.
   */
  async #refresh(recycles: boolean): Promise<void> {
    const before = this.#current;
    if (before?.state !== 'serving' || this.#state === 'closing') return;
    const next = this.#start();
    this.#replacement = next;
    const isBetter = (await this.#loadNew(next, before)) > 0 || recycles;
    const tried = [...next.tried];
    if (isBetter) await this.#loadServed(next, before);
    // The old process has ended meanwhile, and this one has its place.
    if (this.#current === next) return await this.#begin(next, true);
    // The slot is closing, and waits for both.
    if (this.#isClosing()) return;
    if (next.state === 'ended') {
      this.#restartBeside.schedule({ served: false, lived: next.lived }, () => this.#options.hooks.rollOut());
      return;
    }
    this.#restartBeside.reset();
    this.#replacement = undefined;
    for (const key of tried) before.tried.add(key);
    if (isBetter && this.#covers(next, before)) {
      if (recycles) this.#options.hooks.replaced();
      await this.#changeOver(next, before);
    } else await this.#keep(before, next);
  }

  /** Loads what the process that serves has not tried. Returns how many loads succeeded. */
  #loadNew(next: ProcessRun, before: ProcessRun): Promise<number> {
    const { hooks } = this.#options;
    return next.loadEach(() => nextOf(next, trusted(hooks.wanted().filter(({ key }) => !before.tried.has(key)))));
  }

  /** Loads what the process that serves has, except what has a successor in `next`. */
  async #loadServed(next: ProcessRun, before: ProcessRun): Promise<void> {
    await next.loadEach(() => {
      const names = this.#namesIn(next);
      return this.#options.hooks
        .known()
        .find(({ key, name }) => before.process.models.has(key) && !next.tried.has(key) && !names.has(name));
    });
  }

  async #changeOver(next: ProcessRun, before: ProcessRun): Promise<void> {
    this.#current = next;
    this.#leaving = before;
    before.giveWayTo(next);
    this.#serve(next);
    this.#letGo();
    await before.ended;
  }

  /** Lets the process that serves load the models that the other one could load, and ends the other one. */
  async #keep(before: ProcessRun, other: ProcessRun): Promise<void> {
    const sound = this.#options.hooks.wanted().filter(({ key }) => other.process.models.has(key));
    other.dismiss();
    await other.ended;
    for (const revision of sound) if (!before.process.models.has(revision.key)) await before.load(revision);
  }

  #gone(run: ProcessRun, death: Death, lost: readonly number[]): void {
    const { name, settings, hooks } = this.#options;
    const wasDismissed = run.state === 'dismissed';
    run.end();
    this.#open.delete(run);
    const lived = Math.round(run.lived);
    const fields = { engine: name, pid: run.process.pid, reason: death.reason, lived, jobs: lost.length };
    if (!wasDismissed && !this.#isClosing()) settings.logger.warn(fields, 'an engine has died');
    else if (death === OVERDUE) settings.logger.warn(fields, 'an engine did not end when it was told to');
    else settings.logger.debug(fields, 'an engine has ended');
    if (run === this.#leaving) this.#leaving = undefined;
    else if (run === this.#replacement) this.#replacement = undefined;
    else if (run === this.#current) {
      this.#current = this.#replacement;
      this.#replacement = undefined;
      if (this.#current === undefined && !this.#isClosing())
        this.#restart.schedule({ served: run.served, lived }, () => this.#launch());
    }
    hooks.lost(run.process, lost, death);
    run.settle();
    if (this.#open.size === 0) this.#allEnded?.();
  }

  #measured(run: ProcessRun, resident: number, released: boolean): void {
    const { name, settings, spare } = this.#options;
    if (run !== this.#current || run.state !== 'serving' || this.#isClosing() || spare.taken) return;
    const { loadedBytes: loaded, lived } = run;
    const due = this.#recycling.due({ resident, loaded, lived, released }, performance.now());
    if (due === 'release') run.process.release();
    if (due !== 'replacement') return;
    const fields = { engine: name, resident, loaded, limit: settings.engineMemoryBytes };
    settings.logger.warn(fields, 'an engine is too large and is replaced');
    void spare.use(() => this.#refresh(true));
  }

  #isClosing(): boolean {
    return this.#state === 'closing';
  }
}

/**
 * The revision that a process loads next. One that has failed before comes last, and is not loaded into a process that
 * has loaded something: those models would have to wait for it, and another process may try it later.
 */
function nextOf(run: ProcessRun, revisions: readonly Revision[]): Revision | undefined {
  return revisions.find(
    ({ key, failures }) => !run.tried.has(key) && (failures === 0 || run.process.models.size === 0),
  );
}

/**
 * The revisions during whose loading no engine has ended, or all if there are none: a model that ends its process takes
 * along what was loaded with it.
 */
function trusted(revisions: readonly Revision[]): readonly Revision[] {
  const innocent = revisions.filter(({ blame }) => blame === 0);
  return innocent.length > 0 ? innocent : revisions;
}

// A place for one process more than there are engines: processes that load models beside those that serve take turns in
// it.

/** A place for one process at a time. */
interface SparePlace {
  /** Whether a task has it or waits for it. */
  readonly taken: boolean;
  /** Runs a task once all earlier ones are done; it has the place until its promise settles. */
  use(task: () => Promise<void>): Promise<void>;
}

/** A place that nobody has taken. */
export function createSparePlace(): SparePlace {
  let last = Promise.resolve();
  let users = 0;
  return {
    get taken() {
      return users > 0;
    },
    use(task) {
      users++;
      last = last.then(task).finally(() => {
        users--;
      });
      return last;
    },
  };
}
