/** Loads the wanted models into the engine processes, judges how that went, and tries failed models again. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineSettings } from '../options.ts';
import { isRemote } from '../packages/manifest.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineProcess, LoadOutcome } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import type { Misfit } from '../processes/process-run.ts';
import { limitsProblem, worstCost } from './estimates.ts';

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

/** What a `ModelLoading` works with. */
export interface ModelLoadingOptions {
  readonly settings: EngineSettings;
  readonly revisions: Pick<Revisions, 'succeeded' | 'failed' | 'doubted' | 'blamed'>;
  /** The revisions that these engines should have loaded. */
  wanted(): readonly Revision[];
  readonly slots: readonly EngineSlot[];
  /** Called when an engine can serve a model that it could not serve before. */
  served(): void;
}

/** Loads the models of a group, when it is asked to and until `close`. */
export class ModelLoading {
  readonly #options: ModelLoadingOptions;
  /** The revisions that wait to be tried again. */
  readonly #retries = new Map<string, NodeJS.Timeout>();
  /** The last of the loads of a revision that no engine had loaded before: they are done in turn. */
  readonly #firstLoads = new Map<string, Promise<void>>();
  #rollingOut = Promise.resolve();
  #state: 'open' | 'closed' = 'open';

  constructor(options: ModelLoadingOptions) {
    this.#options = options;
  }

  /**
   * The revisions that an engine should load now: not those that failed and wait to be tried again; those that another
   * one is loading come last.
   */
  wanted(): readonly Revision[] {
    const wanted = this.#options.wanted().filter(({ key }) => !this.#retries.has(key));
    return wanted.toSorted((a, b) => Number(this.#firstLoads.has(a.key)) - Number(this.#firstLoads.has(b.key)));
  }

  /** See `SlotHooks.turn`. */
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

  /** Why an engine that has loaded a revision is too slow to serve it. */
  misfit({ models }: EngineProcess, { key, manifest }: Revision): Misfit | undefined {
    const { largestRequestMs } = this.#options.settings;
    const profile = models.get(key);
    if (profile === undefined) return undefined;
    const problem = limitsProblem(profile, manifest, largestRequestMs);
    if (problem === undefined) return undefined;
    return { problem, excess: worstCost(profile, manifest.limits) / largestRequestMs };
  }

  /** Loads what is new, in one engine after the other, so that the others go on deciding. */
  rollOut(): Promise<void> {
    this.#rollingOut = this.#rollingOut.then(async () => {
      for (const slot of this.#options.slots) await slot.sync();
    });
    return this.#rollingOut;
  }

  /** Takes note of how a load ended. */
  loaded(process: EngineProcess, revision: Revision, outcome: LoadOutcome): void {
    if (this.#state === 'closed') return;
    const { settings, revisions, slots, served } = this.#options;
    if (outcome.kind === 'gone') {
      if (revisions.blamed(revision, outcome.killed ? KILL_BLAME : CRASH_BLAME, FATAL_BLAME)) {
        this.#fail(revision, ['engine after engine ended while it was loaded']);
      } else if (slots.some((slot) => slot.process !== undefined)) this.#retryLater(revision);
      return;
    }
    if (outcome.kind === 'failed') {
      const { problems, excess } = outcome;
      // A slow server delays no other model, so it is tried again as soon as usual.
      const isCertain = excess !== undefined && excess > CERTAIN_EXCESS && !isRemote(revision.manifest.family);
      revisions.doubted(revision, excess !== undefined && !isCertain);
      this.#fail(revision, problems, isCertain ? settings.tooSlowRetryMs : 0);
      return;
    }
    const profile = process.models.get(revision.key);
    // It was retired while it was being loaded.
    if (profile === undefined) return;
    const slow = limitsProblem(profile, revision.manifest, settings.defaultDeadlineMs);
    if (slow !== undefined && revision.state !== 'ready')
      settings.logger.warn({ model: revision.name, problems: [slow] }, 'a model is slow here');
    revisions.succeeded(revision, profile);
    served();
  }

  /** Takes note that a process can no longer serve a model that it had loaded. */
  unready(key: string, problems: readonly string[]): void {
    const revision = this.#options.wanted().find((each) => each.key === key);
    if (revision !== undefined) this.#fail(revision, problems);
  }

  /** Tries all failed models again now. */
  retry(): void {
    this.#retry([...this.#retries.keys()]);
  }

  /** Ends the wait of a revision that is no longer served. */
  forget(key: string): void {
    clearTimeout(this.#retries.get(key));
    this.#retries.delete(key);
  }

  close(): void {
    this.#state = 'closed';
    for (const timer of this.#retries.values()) clearTimeout(timer);
  }

  #retry(keys: readonly string[]): void {
    for (const key of keys) {
      this.forget(key);
      for (const slot of this.#options.slots) slot.retry(key);
    }
    void this.rollOut();
  }

  #retryLater({ key, failures }: Revision, least = 0): void {
    if (this.#state === 'closed' || this.#retries.has(key)) return;
    const { longestRetryMs, modelRetryMs } = this.#options.settings;
    const usual = Math.min(longestRetryMs, modelRetryMs * 2 ** Math.max(0, failures - 1));
    this.#retries.set(key, setTimeout(() => this.#retry([key]), Math.max(least, usual)).unref());
  }

  #fail(revision: Revision, problems: readonly string[], retryAfter = 0): void {
    const { settings, revisions, slots } = this.#options;
    const { key, name } = revision;
    if (revision.retired) return;
    if (slots.some(({ process }) => process?.models.has(key))) {
      settings.logger.warn({ model: name, problems }, 'an engine cannot load a model that others serve');
    } else revisions.failed(revision, problems);
    this.#retryLater(revision, retryAfter);
  }
}

const MIB = 2 ** 20;

/**
 * Takes note of the resident bytes of an engine that has just loaded its models. Warns if they are above the limit, and
 * again only after all engines were below it.
 */
export function createMemoryWarning({
  engineMemoryBytes,
  logger,
}: Pick<EngineSettings, 'engineMemoryBytes' | 'logger'>): (engine: string, loaded: number) => void {
  const above = new Set<string>();
  return (engine, loaded) => {
    if (loaded <= engineMemoryBytes) {
      above.delete(engine);
      return;
    }
    const isNews = above.size === 0;
    above.add(engine);
    if (!isNews) return;
    const [takes, limit] = [Math.ceil(loaded / MIB), Math.floor(engineMemoryBytes / MIB)];
    logger.warn(
      { engine, resident: loaded, limit: engineMemoryBytes },
      `the models alone take ${takes} MiB, more than the ${limit} MiB of UMPIRE_ENGINE_MEMORY: ` +
        'raise it, or serve fewer models with UMPIRE_MODELS',
    );
  };
}
