/** Brings the wanted models into the engine processes, judges what came of it, and tries failed ones again. */

import type { EngineSettings } from '../options.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import type { EngineProcess, LoadOutcome } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import { limitsProblem } from '../scheduling/job-cost.ts';

/** The loading of models. */
export interface ModelLoading {
  /** The revisions that an engine should load now: not those that failed and wait to be tried again. */
  wanted(): readonly Revision[];
  /** Why an engine that has loaded a revision must not serve it. */
  misfit(process: EngineProcess, revision: Revision): string | undefined;
  /** Loads what is new, in one engine after the other, so that the others go on deciding. */
  rollOut(): Promise<void>;
  /** Takes note of how a load ended. */
  loaded(process: EngineProcess, revision: Revision, outcome: LoadOutcome): void;
  /** Takes note that a process cannot serve a model any more that it had loaded. */
  unready(key: string, problems: readonly string[]): void;
  close(): void;
}

// So much in a row is held against the model that engines were loading when they ended: five crashes. An engine that was killed counts little, for
// that is not the model's doing, unless it is so large that the system kills each engine that loads it.
const fatalBlame = 30;
const crashBlame = 6;
const killBlame = 1;
/** Measurements in a row by which a model is too slow for its limits for good. */
const certainFailures = 3;

/** `served` is called when an engine can serve a model that it could not serve before. */
export function createModelLoading(
  settings: EngineSettings,
  revisions: Revisions,
  slots: readonly EngineSlot[],
  served: () => void,
): ModelLoading {
  const retries = new Map<string, NodeJS.Timeout>();
  let rollingOut = Promise.resolve();
  let closed = false;

  const rollOut = (): Promise<void> => {
    rollingOut = rollingOut.then(async () => {
      for (const slot of slots) await slot.sync();
    });
    return rollingOut;
  };

  const retryLater = ({ key, failures }: Revision): void => {
    if (closed || retries.has(key)) return;
    const delay = Math.min(settings.longestRetryMs, settings.modelRetryMs * 2 ** Math.max(0, failures - 1));
    const retry = (): void => {
      retries.delete(key);
      for (const slot of slots) slot.retry(key);
      void rollOut();
    };
    retries.set(key, setTimeout(retry, delay).unref());
  };

  const fail = (revision: Revision, problems: readonly string[]): void => {
    const { key, name } = revision;
    if (revision.retired) return;
    if (slots.some(({ process }) => process?.models.has(key))) {
      settings.logger.warn({ model: name, problems }, 'an engine cannot load a model that others serve');
    } else revisions.failed(revision, problems);
    retryLater(revision);
  };

  return {
    wanted: () => revisions.wanted().filter(({ key }) => !retries.has(key)),
    misfit({ models }, { key, manifest }) {
      const profile = models.get(key);
      return profile && limitsProblem(profile, manifest, settings.defaultDeadlineMs);
    },
    rollOut,
    loaded(process, revision, outcome) {
      if (closed) return;
      if (outcome.kind === 'gone') {
        revision.blame += outcome.killed ? killBlame : crashBlame;
        if (revision.blame >= fatalBlame) {
          revision.blame = 0;
          fail(revision, ['engine after engine ended while it was loaded']);
        } else if (slots.some((slot) => slot.process !== undefined)) retryLater(revision);
        return;
      }
      if (outcome.kind === 'failed') {
        // On a busy machine the next measurement may be another one.
        revision.undecided =
          outcome.measured === true && revision.state !== 'ready' && revision.failures + 1 < certainFailures;
        return fail(revision, outcome.problems);
      }
      const profile = process.models.get(revision.key);
      // Retired while it was loaded.
      if (profile === undefined) return;
      revision.profile = profile;
      revisions.succeeded(revision);
      served();
    },
    unready(key, problems) {
      const revision = revisions.wanted().find((each) => each.key === key);
      if (revision !== undefined) fail(revision, problems);
    },
    close() {
      closed = true;
      for (const timer of retries.values()) clearTimeout(timer);
    },
  };
}
