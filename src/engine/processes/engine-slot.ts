/**
 * A place for one engine process: keeps a process running, gives it the models that are wanted, and replaces it when it
 * ends, is stuck or has grown too large.
 *
 * Loading a model holds up everything else in a process. So a process that has loaded all that was wanted loads no
 * more: what is wanted later is loaded by another one, started beside it, which then takes its place. The old one
 * finishes its jobs and ends. If the new one cannot load what the old one serves (because files have changed), the old
 * one stays and loads the new models itself.
 *
 * One file: which process a slot has, and which one takes its place, is one question.
 */
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import { type EngineListener, EngineProcess } from './engine-process.ts';
import { type Death, OVERDUE, Recycling, RestartTimer } from './recycling.ts';

/** A place, with a process that is started at once. */
export class EngineSlot {
  /** What the log calls it. */
  readonly name: string;
  /** Jobs that its process works on at a time. */
  readonly concurrency: number;
  readonly #settings: EngineSettings;
  readonly #listener: EngineListener;
  /** All processes that are not gone. */
  readonly #open = new Set<EngineProcess>();
  /** The process that serves, or loads to serve; undefined while the slot waits to start one. */
  #current: EngineProcess | undefined;
  /** The process that loads beside the current one, to take its place. */
  #replacement: EngineProcess | undefined;
  /** The process whose place was taken. */
  #leaving: EngineProcess | undefined;
  #state: 'open' | 'closing' = 'open';
  readonly #restart = new RestartTimer();
  /** The wait before another process is started beside the one that serves. */
  readonly #restartBeside = new RestartTimer();
  readonly #recycling: Recycling;
  /** Whether the current process is to be replaced for its size. */
  #isTooLarge = false;

  constructor(name: string, concurrency: number, settings: EngineSettings, listener: EngineListener) {
    this.name = name;
    this.concurrency = concurrency;
    this.#settings = settings;
    this.#listener = listener;
    this.#recycling = new Recycling(settings.engineMemoryBytes, settings.recycleAfterMs);
    this.#launch();
  }

  /** The process that serves; undefined while there is none. */
  get process(): EngineProcess | undefined {
    return this.#current?.state === 'serving' ? this.#current : undefined;
  }

  /** That process, and its predecessor until it is dismissed. */
  get processes(): readonly EngineProcess[] {
    return [this.process ?? [], this.#leaving?.state === 'leaving' ? this.#leaving : []].flat();
  }

  /** Milliseconds until a process is started, if there is none; otherwise 0. */
  get restartsIn(): number {
    return this.#current === undefined ? this.#restart.remaining : 0;
  }

  /**
   * Replaces a process that is too large, and loads what is wanted and has not been tried. Resolves when that is done.
   * Slots take turns in it, so that there is one process more than slots at most.
   */
  async sync(): Promise<void> {
    const process = this.#current;
    if (process === undefined || this.#isClosing()) return;
    if (process.beginning !== undefined) return await process.beginning;
    if (this.#isTooLarge) return await this.#refresh(true);
    if (this.#listener.wanted().every(({ key }) => process.tried.has(key))) return;
    if (process.models.size > 0) return await this.#refresh(false);
    process.beginning = this.#begin(process, true);
    await process.beginning;
  }

  /** Lets `sync` try a revision again. */
  retry(key: string): void {
    for (const process of [this.#current, this.#replacement]) {
      if (process?.models.has(key) === false) process.tried.delete(key);
    }
  }

  unload(key: string): void {
    for (const process of this.#open) process.unload(key);
    this.#letGo();
  }

  /**
   * Looks for processes that are stuck or too large; called often. `heldUp`: milliseconds by which the call comes late,
   * because the serving process or the whole machine stood still.
   */
  check(heldUp: number): void {
    this.#letGo();
    for (const process of this.#open) process.check(heldUp);
    this.#checkSize();
  }

  /** Drains and ends the process for good; kills it after `grace` milliseconds. */
  async close(grace: number): Promise<void> {
    this.#state = 'closing';
    this.#restart.cancel();
    this.#restartBeside.cancel();
    const open = [...this.#open];
    for (const process of open) {
      // All jobs are done by now, so nobody waits for a model that is still being loaded.
      if (process.loading && process.inFlight === 0)
        process.kill({ cause: 'drained', reason: 'ended while it loaded a model' });
      else process.dismiss();
    }
    const killer = setTimeout(() => {
      for (const process of open) process.kill(OVERDUE);
    }, grace);
    await Promise.all(open.map(({ ended }) => ended));
    clearTimeout(killer);
  }

  /** Takes note that a process is gone, if it was one of this slot's. `jobs`: those that it had in flight. */
  gone(process: EngineProcess, death: Death, jobs: number): void {
    if (!this.#open.delete(process)) return;
    const { pid, served, dismissed } = process;
    const lived = Math.round(performance.now() - process.since);
    const fields = { engine: this.name, pid, reason: death.reason, lived, jobs };
    const { logger } = this.#settings;
    if (!dismissed && !this.#isClosing()) logger.warn(fields, 'an engine has died');
    else if (death === OVERDUE) logger.warn(fields, 'an engine did not end when it was told to');
    else logger.debug(fields, 'an engine has ended');
    if (process === this.#leaving) this.#leaving = undefined;
    else if (process === this.#replacement) this.#replacement = undefined;
    else if (process === this.#current) {
      this.#current = this.#replacement;
      this.#replacement = undefined;
      this.#isTooLarge = false;
      if (this.#current === undefined && !this.#isClosing())
        this.#restart.schedule({ served, lived }, () => this.#launch());
    }
  }

  #start(): EngineProcess {
    const process = new EngineProcess(this.name, this.#settings, this.concurrency, this.#listener);
    this.#open.add(process);
    return process;
  }

  #launch(): void {
    this.#current = this.#start();
    this.#current.beginning = this.#begin(this.#current, false);
  }

  /**
   * Loads the wanted models into a process that serves nothing, and lets it serve as soon as it has one: decisions wait
   * for no more than the load in hand. Unless `all` is set, a model that engines have
   * ended with is loaded later, in a process beside this one.
   */
  async #begin(process: EngineProcess, all: boolean): Promise<void> {
    process.pause();
    const isCurrent = (): boolean => process === this.#current && !this.#isClosing();
    await process.loadEach(() => {
      const wanted = this.#listener.wanted();
      const left = (all ? wanted : trusted(wanted)).filter(({ key }) => !process.tried.has(key));
      if (isCurrent() && process.models.size > 0) process.serve();
      return nextOf(process, left);
    });
    if (isCurrent()) serveAll(process);
  }

  /** Dismisses a process whose place was taken, once nothing waits for it. */
  #letGo(): void {
    const process = this.#leaving;
    if (process?.state === 'leaving' && process.models.size === 0) process.dismiss();
  }

  /**
   * Loads what is new, and then all that is served, in a process beside the one that serves, which then takes its
   * place.
   */
  async #refresh(recycles: boolean): Promise<void> {
    const before = this.#current;
    if (before?.state !== 'serving') return;
    const next = this.#start();
    this.#replacement = next;
    const isBetter = (await this.#loadNew(next, before)) > 0 || recycles;
    const tried = [...next.tried];
    if (isBetter) await loadServed(next, before);
    // The old process has ended meanwhile, and this one has its place.
    if (this.#current === next) return await this.#begin(next, true);
    // The slot is closing, and waits for both.
    if (this.#isClosing()) return;
    this.#isTooLarge = false;
    if (next.state === 'gone') {
      const life = { served: false, lived: performance.now() - next.since };
      this.#restartBeside.schedule(life, () => this.#listener.rollOut());
      return;
    }
    this.#restartBeside.reset();
    this.#replacement = undefined;
    for (const key of tried) before.tried.add(key);
    if (isBetter && covers(next, before)) {
      if (recycles) this.#listener.replaced();
      await this.#changeOver(next, before);
    } else await this.#keep(before, next);
  }

  /** Loads what the process that serves has not tried. Resolves to how many loads succeeded. */
  #loadNew(next: EngineProcess, before: EngineProcess): Promise<number> {
    const untried = (): readonly Revision[] => this.#listener.wanted().filter(({ key }) => !before.tried.has(key));
    return next.loadEach(() => nextOf(next, trusted(untried())));
  }

  async #changeOver(next: EngineProcess, before: EngineProcess): Promise<void> {
    this.#current = next;
    this.#leaving = before;
    before.giveWayTo(next);
    serveAll(next);
    this.#letGo();
    await before.ended;
  }

  /** Lets the process that serves load the models that the other one could load, and ends the other one. */
  async #keep(before: EngineProcess, other: EngineProcess): Promise<void> {
    const sound = this.#listener.wanted().filter(({ key }) => other.models.has(key));
    other.dismiss();
    await other.ended;
    for (const revision of sound) if (!before.models.has(revision.key)) await before.load(revision);
  }

  #checkSize(): void {
    const process = this.process;
    const isChanging = this.#isTooLarge || this.#replacement !== undefined || this.#leaving !== undefined;
    if (process === undefined || isChanging || this.#isClosing()) return;
    const size = process.size();
    const due = this.#recycling.due(size, performance.now());
    if (due === 'release') process.release();
    if (due !== 'replacement') return;
    const { engineMemoryBytes: limit, logger } = this.#settings;
    const { resident, loaded } = size;
    logger.warn({ engine: this.name, resident, loaded, limit }, 'an engine is too large and is replaced');
    this.#isTooLarge = true;
    this.#listener.rollOut();
  }

  #isClosing(): boolean {
    return this.#state === 'closing';
  }
}

/** Lets a process serve that has loaded what it could of all that is wanted. */
function serveAll(process: EngineProcess): void {
  process.beginning = undefined;
  process.serve();
}

/** Names of the revisions that a process has loaded. */
function namesIn({ models }: EngineProcess): ReadonlySet<string> {
  return new Set([...models.values()].map(({ name }) => name));
}

/** Whether `next` has all that `before` serves, or its successors of the same name. */
function covers(next: EngineProcess, before: EngineProcess): boolean {
  const names = namesIn(next);
  return [...before.models.values()].every(({ name, retired }) => retired || names.has(name));
}

/** Loads what the process that serves has, except what has a successor in `next`. */
async function loadServed(next: EngineProcess, before: EngineProcess): Promise<void> {
  await next.loadEach(() => {
    const names = namesIn(next);
    return [...before.models.values()].find(
      ({ key, name, retired }) => !retired && !next.tried.has(key) && !names.has(name),
    );
  });
}

/**
 * The revision that a process loads next. One that has failed before comes last, and is not loaded into a process that
 * has loaded something: those models would have to wait for it, and another process may try it later.
 */
function nextOf({ models, tried }: EngineProcess, revisions: readonly Revision[]): Revision | undefined {
  return revisions.find(({ key, failures }) => !tried.has(key) && (failures === 0 || models.size === 0));
}

/**
 * The revisions during whose loading no engine has ended, or all if there are none: a model that ends its process takes
 * along what was loaded with it.
 */
function trusted(revisions: readonly Revision[]): readonly Revision[] {
  const innocent = revisions.filter(({ blame }) => blame === 0);
  return innocent.length > 0 ? innocent : revisions;
}
