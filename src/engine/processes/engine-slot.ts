/**
 * A place for one engine process: keeps a process running there, gives it the models that are wanted, replaces it when it ends, is stuck or has
 * grown too large.
 *
 * Loading a model holds up everything else in a process. So a process serves when it has loaded all that is wanted, and what is wanted later is
 * loaded by another one, started beside it, which then takes its place. The old one does what it has begun, and ends. If the new one cannot load what
 * the old one serves (its files have changed), the old one stays and loads what is new itself.
 */
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { Death } from './deaths.ts';
import { type EngineProcess, startEngineProcess } from './engine-process.ts';
import { createTenancy, isStuck, STUCK, type Tenancy } from './process-run.ts';
import { restartDelay } from './restarts.ts';
import type { SlotHooks } from './slot-hooks.ts';
import type { SparePlace } from './spare-place.ts';

/** A place for an engine process. */
export interface EngineSlot {
  /** The process that serves; undefined while there is none. */
  readonly process: EngineProcess | undefined;
  /** That one, and the one before it while jobs wait for a model that it alone has. */
  readonly processes: readonly EngineProcess[];
  /** Milliseconds until there probably is a process that serves, if there is none. */
  readonly restartsIn: number;
  /** Loads what is wanted and was not tried. Resolves when all of it was. */
  sync(): Promise<void>;
  /** Lets `sync` try a revision again. */
  retry(key: string): void;
  unload(key: string): void;
  /** Looks for a stuck process; called often. */
  check(): void;
  /** Drains and ends the process for good; kills it after `grace` milliseconds. */
  close(grace: number): Promise<void>;
}

/** Starts the slot's first process at once; the log calls it by its name. `spare` is for the process beside it. */
export function createEngineSlot(
  name: string,
  settings: EngineSettings,
  concurrency: number,
  spare: SparePlace,
  hooks: SlotHooks,
): EngineSlot {
  const { logger } = settings;
  /** All processes that have not ended. */
  const open = new Set<Tenancy>();
  let current: Tenancy | undefined;
  let replacement: Tenancy | undefined;
  let leaving: Tenancy | undefined;
  let closing = false;
  let delay = 0;
  let restartAt = performance.now();
  let recycleAt = 0;
  let timer: NodeJS.Timeout | undefined;
  /** The wait after a process that ended beside the one that serves. */
  let besideDelay = 0;
  let besideTimer: NodeJS.Timeout | undefined;
  let allEnded: (() => void) | undefined;

  const start = (): Tenancy => {
    const tenancy: Tenancy = createTenancy(
      startEngineProcess(name, settings, concurrency, {
        finished: (job, result, occupied) => hooks.finished(tenancy.process, job, result, occupied),
        memory: (resident) => measured(tenancy, resident),
        unready: (key, problems) => hooks.unready(key, problems),
        calls: (calls) => hooks.calls(calls),
        gone: (death, lost) => gone(tenancy, death, lost),
      }),
    );
    open.add(tenancy);
    return tenancy;
  };

  /** Whether the process can serve the revision now. */
  const load = async (tenancy: Tenancy, revision: Revision): Promise<boolean> => {
    tenancy.tried.add(revision.key);
    let outcome = await tenancy.process.load(revision);
    const problem = outcome.kind === 'ready' ? hooks.misfit(tenancy.process, revision) : undefined;
    if (problem !== undefined) {
      tenancy.process.unload(revision.key);
      outcome = { kind: 'failed', problems: [problem], measured: true };
    }
    if (outcome.kind === 'ready') tenancy.served = true;
    if (outcome.kind === 'ready' && !tenancy.serving) tenancy.untold.push(revision);
    else hooks.loaded(tenancy.process, revision, outcome);
    return outcome.kind === 'ready';
  };

  /** Loads what `next` names, until it names nothing more. How many loads succeeded. */
  const loadEach = async (tenancy: Tenancy, next: () => Revision | undefined): Promise<number> => {
    let loaded = 0;
    for (let each = next(); each !== undefined && !tenancy.over; each = next()) {
      if (await load(tenancy, each)) loaded++;
    }
    return loaded;
  };

  const serve = (tenancy: Tenancy): void => {
    tenancy.serving = true;
    const { untold } = tenancy;
    tenancy.untold = [];
    for (const revision of untold) hooks.loaded(tenancy.process, revision, { kind: 'ready' });
    hooks.rollOut();
  };

  /** Loads into a process that serves nothing, and has it serve. What an engine has ended with comes later, in a process beside this one. */
  const begin = async (tenancy: Tenancy, all: boolean): Promise<void> => {
    tenancy.serving = false;
    await loadEach(tenancy, () => {
      const wanted = hooks.wanted();
      return (all ? wanted : trusted(wanted)).find(({ key }) => !tenancy.tried.has(key));
    });
    if (tenancy === current && !closing) serve(tenancy);
  };

  const launch = (): void => {
    current = start();
    current.begun = begin(current, false);
  };

  /** Ends a process that serves nothing any more. */
  const dismiss = (tenancy: Tenancy): void => {
    tenancy.dismissed = true;
    tenancy.process.drain();
  };

  const letGo = (): void => {
    if (leaving === undefined || leaving.dismissed) return;
    if (leaving.process.models.size === 0 && !hooks.preparing(leaving.process)) dismiss(leaving);
  };

  /** Whether a process has all that another serves, or what takes its place. */
  const covers = (next: Tenancy, before: Tenancy): boolean => {
    const known = hooks.known();
    const names = new Set(known.filter(({ key }) => next.process.models.has(key)).map((each) => each.name));
    return known.every((each) => !before.process.models.has(each.key) || names.has(each.name));
  };

  /** Loads what is new, and then all that is served, in a process beside the one that serves, and changes over. */
  const refresh = async (recycles: boolean): Promise<void> => {
    const before = current;
    if (before?.serving !== true || closing) return;
    const next = start();
    replacement = next;
    const fresh = await loadEach(next, () =>
      trusted(hooks.wanted().filter(({ key }) => !before.tried.has(key))).find(({ key }) => !next.tried.has(key)),
    );
    const tried = [...next.tried];
    if (fresh > 0 || recycles) {
      await loadEach(next, () => {
        const known = hooks.known();
        const names = new Set(known.filter(({ key }) => next.process.models.has(key)).map((each) => each.name));
        return known.find((each) => {
          return before.process.models.has(each.key) && !next.tried.has(each.key) && !names.has(each.name);
        });
      });
    }
    // The old one has ended meanwhile, and this one has its place.
    if (current === next) return await begin(next, true);
    if (closing) return;
    if (next.over) {
      besideDelay = restartDelay({ served: false, lived: performance.now() - next.since }, besideDelay);
      besideTimer = setTimeout(() => hooks.rollOut(), besideDelay);
      return;
    }
    besideDelay = 0;
    replacement = undefined;
    for (const key of tried) before.tried.add(key);
    if ((fresh > 0 || recycles) && covers(next, before)) {
      current = next;
      leaving = before;
      before.process.cede(next.process.models.keys());
      serve(next);
      letGo();
      return await before.ended.promise;
    }
    dismiss(next);
    const sound = hooks.wanted().filter(({ key }) => next.process.models.has(key));
    await next.ended.promise;
    for (const revision of sound) if (!before.process.models.has(revision.key)) await load(before, revision);
  };

  const gone = (tenancy: Tenancy, death: Death, lost: readonly number[]): void => {
    tenancy.over = true;
    open.delete(tenancy);
    const lived = Math.round(performance.now() - tenancy.since);
    const fields = { engine: name, pid: tenancy.process.pid, reason: death.reason, lived, jobs: lost.length };
    if (tenancy.dismissed || closing) logger.debug(fields, 'an engine has ended');
    else logger.warn(fields, 'an engine has died');
    if (tenancy === leaving) leaving = undefined;
    else if (tenancy === replacement) replacement = undefined;
    else if (tenancy === current) {
      current = replacement;
      replacement = undefined;
      if (current === undefined && !closing) {
        delay = restartDelay({ served: tenancy.served, lived }, delay);
        restartAt = performance.now() + delay;
        timer = setTimeout(launch, delay);
      }
    }
    hooks.lost(tenancy.process, lost, death);
    tenancy.ended.resolve();
    if (open.size === 0) allEnded?.();
  };

  const measured = (tenancy: Tenancy, resident: number): void => {
    const now = performance.now();
    if (resident <= settings.engineMemoryBytes || tenancy !== current || !tenancy.serving || closing) return;
    if (spare.taken || now < recycleAt || now - tenancy.since < settings.recycleAfterMs) return;
    recycleAt = now + settings.recycleAfterMs;
    logger.warn(
      { engine: name, resident, limit: settings.engineMemoryBytes },
      'an engine is too large and is replaced',
    );
    void spare.use(() => refresh(true));
  };

  launch();

  return {
    get process() {
      return current?.serving === true ? current.process : undefined;
    },
    get processes() {
      const before = leaving?.dismissed === false ? [leaving.process] : [];
      return current?.serving === true ? [current.process, ...before] : before;
    },
    get restartsIn() {
      return current === undefined ? Math.max(0, restartAt - performance.now()) : 0;
    },
    async sync() {
      const serving = current;
      if (serving === undefined || closing) return;
      if (!serving.serving) return await serving.begun;
      if (hooks.wanted().every(({ key }) => serving.tried.has(key))) return;
      if (serving.process.models.size > 0) return await spare.use(() => refresh(false));
      serving.begun = begin(serving, true);
      await serving.begun;
    },
    retry(key) {
      for (const each of [current, replacement]) if (each?.process.models.has(key) === false) each.tried.delete(key);
    },
    unload(key) {
      for (const { process } of open) process.unload(key);
      letGo();
    },
    check() {
      letGo();
      for (const each of open) {
        if (!isStuck(each, settings)) continue;
        // If this process itself was held up, the engine's messages may lie unread: they are read before this is judged again.
        setImmediate(() => setImmediate(() => !each.over && isStuck(each, settings) && each.process.kill(STUCK)));
      }
    },
    close(grace) {
      closing = true;
      clearTimeout(timer);
      clearTimeout(besideTimer);
      if (open.size === 0) return Promise.resolve();
      for (const { process } of open) {
        // All jobs are done by now: a model that is still being loaded has nobody waiting for it.
        if (process.silence().loading && process.inFlight === 0)
          process.kill({ cause: 'drained', reason: 'ended while it loaded a model' });
        else process.drain();
      }
      return new Promise((resolve) => {
        const killer = setTimeout(() => {
          for (const { process } of open) process.kill({ cause: 'drained', reason: 'killed: it did not end in time' });
        }, grace);
        allEnded = () => {
          clearTimeout(killer);
          resolve();
        };
      });
    },
  };
}

/** Those that no engine has ended with, or all if there are no others: what ends a process takes what was loaded with it along. */
function trusted(revisions: readonly Revision[]): readonly Revision[] {
  const innocent = revisions.filter(({ blame }) => blame === 0);
  return innocent.length > 0 ? innocent : revisions;
}
