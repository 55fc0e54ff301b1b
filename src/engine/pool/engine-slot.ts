/**
 * A place for one engine process: keeps a process running there, gives it the models that are wanted, replaces it when it ends, is stuck or has
 * grown too large. While a grown process is replaced there are two, and the old one serves until the new one is ready.
 */
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../revisions.ts';
import type { InferenceCalls, JobResult } from '../worker/messages.ts';
import type { Death } from './deaths.ts';
import { type EngineProcess, type LoadOutcome, startEngineProcess } from './engine-process.ts';
import { processUsage } from './process-usage.ts';
import { restartDelay } from './restarts.ts';

/** What a slot tells the pool. */
export interface SlotHooks {
  /** The revisions to load, in order. */
  wanted(): readonly Revision[];
  /** A load ended; `signal` tells how, if the process ended with it. */
  loaded(process: EngineProcess, revision: Revision, outcome: LoadOutcome): void;
  finished(process: EngineProcess, job: number, result: JobResult, occupied: number): void;
  /** A model that the process had loaded cannot serve for now. */
  unready(key: string, problems: readonly string[]): void;
  calls(calls: InferenceCalls): void;
  /** A process ended with jobs in flight. */
  lost(process: EngineProcess, jobs: readonly number[], death: Death): void;
}

/** A place for an engine process. */
export interface EngineSlot {
  /** The process to send jobs to; undefined while there is none. */
  readonly process: EngineProcess | undefined;
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

/** One process and what the slot knows of it. */
interface Tenancy {
  readonly process: EngineProcess;
  readonly tried: Set<string>;
  readonly since: number;
  served: boolean;
  over: boolean;
  /** Its CPU time when it was first found without progress though it could run. */
  suspectedAt: number | undefined;
  loading: boolean;
  /** Resolves when all that was wanted has been tried. */
  loaded: Promise<void>;
}

const STUCK: Death = { cause: 'stuck', reason: 'killed: it made no progress' };

/** Starts the slot's first process at once; the log calls it by its name. */
export function createEngineSlot(name: string, settings: EngineSettings, hooks: SlotHooks): EngineSlot {
  const { logger } = settings;
  let current: Tenancy | undefined;
  let replacement: Tenancy | undefined;
  let retiring: Tenancy | undefined;
  let closing = false;
  let delay = 0;
  let restartAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let ended: (() => void) | undefined;

  const start = (): Tenancy => {
    const tenancy: Tenancy = {
      process: startEngineProcess(name, settings, {
        finished: (job, result, occupied) => hooks.finished(tenancy.process, job, result, occupied),
        memory: (resident) => measured(tenancy, resident),
        unready: (key, problems) => hooks.unready(key, problems),
        calls: (calls) => hooks.calls(calls),
        gone: (death, lost) => gone(tenancy, death, lost),
      }),
      tried: new Set(),
      since: performance.now(),
      served: false,
      over: false,
      suspectedAt: undefined,
      loading: false,
      loaded: Promise.resolve(),
    };
    return tenancy;
  };

  const sync = (tenancy: Tenancy): Promise<void> => {
    if (!tenancy.loading) tenancy.loaded = loadAll(tenancy);
    return tenancy.loaded;
  };

  const loadAll = async (tenancy: Tenancy): Promise<void> => {
    tenancy.loading = true;
    for (;;) {
      const next = hooks.wanted().find(({ key }) => !tenancy.tried.has(key));
      if (next === undefined || tenancy.over) break;
      tenancy.tried.add(next.key);
      const outcome = await tenancy.process.load(next);
      if (outcome.kind === 'ready') tenancy.served = true;
      hooks.loaded(tenancy.process, next, outcome);
    }
    tenancy.loading = false;
  };

  const launch = (): void => {
    current = start();
    void sync(current);
  };

  const gone = (tenancy: Tenancy, death: Death, lost: readonly number[]): void => {
    tenancy.over = true;
    const lived = Math.round(performance.now() - tenancy.since);
    const fields = { engine: name, pid: tenancy.process.pid, reason: death.reason, lived, jobs: lost.length };
    if (tenancy === retiring || closing) logger.debug(fields, 'an engine has ended');
    else logger.warn(fields, 'an engine has died');
    if (tenancy === retiring) retiring = undefined;
    else if (tenancy === replacement) replacement = undefined;
    else current = undefined;
    if (current === undefined && replacement !== undefined) {
      current = replacement;
      replacement = undefined;
    }
    if (current === undefined && !closing) {
      delay = restartDelay({ served: tenancy.served, lived }, delay);
      restartAt = performance.now() + delay;
      timer = setTimeout(launch, delay);
    }
    hooks.lost(tenancy.process, lost, death);
    if (current === undefined && retiring === undefined && replacement === undefined) ended?.();
  };

  const measured = (tenancy: Tenancy, resident: number): void => {
    if (resident <= settings.engineMemoryBytes || tenancy !== current || closing) return;
    if (
      replacement !== undefined ||
      retiring !== undefined ||
      performance.now() - tenancy.since < settings.recycleAfterMs
    )
      return;
    logger.warn(
      { engine: name, resident, limit: settings.engineMemoryBytes },
      'an engine is too large and is replaced',
    );
    const next = start();
    replacement = next;
    void sync(next).then(() => {
      if (replacement !== next || next.over || tenancy.over) return;
      replacement = undefined;
      retiring = tenancy;
      current = next;
      tenancy.process.drain();
    });
  };

  const isStuck = (tenancy: Tenancy): boolean => {
    const { loading, milliseconds } = tenancy.process.silence();
    const bound = loading ? settings.loadStuckAfterMs : settings.stuckAfterMs;
    const usage = milliseconds > bound ? processUsage(tenancy.process.pid ?? 0) : undefined;
    if (usage?.runnable !== true) {
      tenancy.suspectedAt = undefined;
      return milliseconds > bound;
    }
    // It would run if it got a core. Killing it would cost the machine more than it has: only CPU time without progress counts.
    tenancy.suspectedAt ??= usage.cpu;
    return usage.cpu - tenancy.suspectedAt > bound / 4;
  };

  launch();

  return {
    get process() {
      return current?.process;
    },
    get restartsIn() {
      return current === undefined ? Math.max(0, restartAt - performance.now()) : 0;
    },
    async sync() {
      await Promise.all([current, replacement].map((each) => (each === undefined ? undefined : sync(each))));
    },
    retry(key) {
      for (const each of [current, replacement]) if (each?.process.models.has(key) === false) each.tried.delete(key);
    },
    unload(key) {
      for (const each of [current, replacement, retiring]) each?.process.unload(key);
    },
    check() {
      for (const each of [current, replacement, retiring]) {
        if (each === undefined || !isStuck(each)) continue;
        // If this process itself was held up, the engine's messages may lie unread: they are read before this is judged again.
        setImmediate(() => setImmediate(() => !each.over && isStuck(each) && each.process.kill(STUCK)));
      }
    },
    close(grace) {
      closing = true;
      clearTimeout(timer);
      const open = [current, replacement, retiring].filter((each) => each !== undefined);
      if (open.length === 0) return Promise.resolve();
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
        ended = () => {
          clearTimeout(killer);
          resolve();
        };
      });
    },
  };
}
