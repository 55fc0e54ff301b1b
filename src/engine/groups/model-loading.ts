/** Brings the wanted models into the engine processes, judges what came of it, and tries failed ones again. */

import type { EngineSettings } from '../options.ts';
import { isRemote } from '../packages/family-names.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineProcess, LoadOutcome } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import type { Misfit } from '../processes/slot-hooks.ts';
import { limitsProblem, worstCost } from '../scheduling/job-cost.ts';

/** The loading of models. */
export interface ModelLoading {
  /** The revisions that an engine should load now: not those that failed and wait to be tried again. */
  wanted(): readonly Revision[];
  /** Why an engine that has loaded a revision is too slow to serve it. */
  misfit(process: EngineProcess, revision: Revision): Misfit | undefined;
  /** Loads what is new, in one engine after the other, so that the others go on deciding. */
  rollOut(): Promise<void>;
  /** Takes note of how a load ended. */
  loaded(process: EngineProcess, revision: Revision, outcome: LoadOutcome): void;
  /** Takes note that a process cannot serve a model any more that it had loaded. */
  unready(key: string, problems: readonly string[]): void;
  /** Tries all that failed again now. */
  retry(): void;
  /** Ends the wait of a revision that is no longer served. */
  forget(key: string): void;
  close(): void;
}

// So much in a row is held against the model that engines were loading when they ended: five crashes. An engine that
// was killed counts little, for that is not the model's doing, unless it is so large that the system kills each engine
// that loads it.
const FATAL_BLAME = 30;
const CRASH_BLAME = 6;
const KILL_BLAME = 1;

// A busy machine may make a model seem twice as slow as it is. One that is slower yet is not tried again soon, since it
// takes long to measure, and all that is new waits for that.
const CERTAIN_EXCESS = 2;

/** What is loaded, and where. */
export interface ModelLoadingOptions {
  readonly settings: EngineSettings;
  readonly revisions: Pick<Revisions, 'succeeded' | 'failed' | 'doubted' | 'blamed'>;
  /** Those of the revisions that these engines should have loaded. */
  wanted(): readonly Revision[];
  readonly slots: readonly EngineSlot[];
  /** Called when an engine can serve a model that it could not serve before. */
  served(): void;
}

/** Loads nothing before it is asked to. */
export function createModelLoading(options: ModelLoadingOptions): ModelLoading {
  const { settings, revisions, wanted, slots, served } = options;
  const retries = new Map<string, NodeJS.Timeout>();
  let rollingOut = Promise.resolve();
  let closed = false;

  const rollOut = (): Promise<void> => {
    rollingOut = rollingOut.then(async () => {
      for (const slot of slots) await slot.sync();
    });
    return rollingOut;
  };

  const forget = (key: string): void => {
    clearTimeout(retries.get(key));
    retries.delete(key);
  };

  const retry = (keys: readonly string[]): void => {
    for (const key of keys) {
      forget(key);
      for (const slot of slots) slot.retry(key);
    }
    void rollOut();
  };

  const retryLater = ({ key, failures }: Revision, least = 0): void => {
    if (closed || retries.has(key)) return;
    const usual = Math.min(settings.longestRetryMs, settings.modelRetryMs * 2 ** Math.max(0, failures - 1));
    retries.set(key, setTimeout(() => retry([key]), Math.max(least, usual)).unref());
  };

  const fail = (revision: Revision, problems: readonly string[], retryAfter = 0): void => {
    const { key, name } = revision;
    if (revision.retired) return;
    if (slots.some(({ process }) => process?.models.has(key))) {
      settings.logger.warn({ model: name, problems }, 'an engine cannot load a model that others serve');
    } else revisions.failed(revision, problems);
    retryLater(revision, retryAfter);
  };

  return {
    wanted: () => wanted().filter(({ key }) => !retries.has(key)),
    misfit({ models }, { key, manifest }) {
      const profile = models.get(key);
      if (profile === undefined) return undefined;
      const problem = limitsProblem(profile, manifest, settings.defaultDeadlineMs);
      if (problem === undefined) return undefined;
      return { problem, excess: worstCost(profile, manifest.limits) / settings.defaultDeadlineMs };
    },
    rollOut,
    loaded(process, revision, outcome) {
      if (closed) return;
      if (outcome.kind === 'gone') {
        if (revisions.blamed(revision, outcome.killed ? KILL_BLAME : CRASH_BLAME, FATAL_BLAME)) {
          fail(revision, ['engine after engine ended while it was loaded']);
        } else if (slots.some((slot) => slot.process !== undefined)) retryLater(revision);
        return;
      }
      if (outcome.kind === 'failed') {
        const { problems, excess } = outcome;
        // A server that is slow keeps no other model waiting.
        const isCertain = excess !== undefined && excess > CERTAIN_EXCESS && !isRemote(revision.manifest.family);
        revisions.doubted(revision, excess !== undefined && !isCertain);
        return fail(revision, problems, isCertain ? settings.tooSlowRetryMs : 0);
      }
      const profile = process.models.get(revision.key);
      // Retired while it was loaded.
      if (profile === undefined) return;
      revisions.succeeded(revision, profile);
      served();
    },
    unready(key, problems) {
      const revision = wanted().find((each) => each.key === key);
      if (revision !== undefined) fail(revision, problems);
    },
    retry: () => retry([...retries.keys()]),
    forget,
    close() {
      closed = true;
      for (const timer of retries.values()) clearTimeout(timer);
    },
  };
}
