/** The engine as a whole: model packages, processes and pools, wired together. */
import type { Engine, ScoreJob } from './engine.ts';
import { type EngineOptions, type EngineSettings, engineSettings } from './options.ts';
import { isRemote } from './packages/manifest.ts';
import { Revisions } from './packages/revisions.ts';
import { createPackageWatch, type FoundPackage } from './packages/scan.ts';
import { createSelection } from './packages/selection.ts';
import { straysOf, withAddress } from './packages/servers.ts';
import { createEngineGroup, createTally, type EngineGroup } from './pool/engine-group.ts';
import { createInferenceGroups } from './pool/inference-groups.ts';
import { tidyCache } from './worker/cache.ts';

/** Milliseconds between checks for stuck processes. */
const CHECK_INTERVAL = 250;

/**
 * Starts the engine processes and looks for models. Resolves when the packages are known, without waiting for them to
 * be loaded: until then they are `unavailable`. A models folder that cannot be read is logged and tried again later; it
 * does not make the start fail.
 */
export async function createEngine(options: EngineOptions): Promise<Engine> {
  const settings = engineSettings(options);
  let local: EngineGroup | undefined;
  const revisions: Revisions = new Revisions(settings.logger, {
    retired(revision) {
      local?.unload(revision.key);
      inference.retired(revision);
    },
    unavailable(revision) {
      for (const { pool } of groups()) pool.unavailable(revision);
    },
  });
  const tally = createTally();
  const inference = createInferenceGroups(settings, revisions, tally);
  const groups = (): readonly EngineGroup[] => (local === undefined ? inference.all : [local, ...inference.all]);
  const reportStrays = createStrayReport(settings);
  const select = createSelection(settings.models, settings.logger);
  const watch = createPackageWatch(settings, (packages) => {
    reportStrays(packages);
    revisions.apply(select(packages).map((found) => withAddress(found, settings.inferenceServers)));
    inference.rollOut();
    local?.rollOut();
  });
  await watch.scanned;
  if (settings.cacheDir !== '') await tidyCache(settings.cacheDir);
  const engines = createEngineGroup({
    settings,
    concurrency: 1,
    revisions,
    names: Array.from({ length: settings.engines }, (_, index) => `engine-${index}`),
    serves: ({ manifest }) => !isRemote(manifest.family),
    observer: { ...tally, calls() {} },
  });
  local = engines;
  const begun = createBeginning(revisions, groups);
  const interval = Math.min(CHECK_INTERVAL, settings.stuckAfterMs / 4);
  let lastCheck = performance.now();
  const checks = setInterval(() => {
    begun();
    const now = performance.now();
    const heldUp = Math.max(0, now - lastCheck - interval);
    lastCheck = now;
    for (const group of groups()) group.check(heldUp);
  }, interval);

  /** The pool for a job. A model that no process serves is refused by any pool, hence by the local one. */
  const poolOf = ({ model, revision }: Pick<ScoreJob, 'model' | 'revision'>) => {
    const found = revisions.find(model, revision);
    return ((found && inference.of(found)) ?? engines).pool;
  };

  return {
    models: () => revisions.models(),
    score: (job, terms) => poolOf(job).score(job, terms),
    // A decision for an inference server does not wait for the engines here.
    crowded: (terms) => (inference.all.length > 0 ? undefined : engines.pool.crowded(terms)),
    prepare: (job, terms) => poolOf(job).prepare(job, terms),
    ready: () => begun() && groups().some((group) => group.ready()),
    stats() {
      const backlogs = groups().map((group) => group.backlog());
      return tally.read({
        queue: {
          jobs: backlogs.reduce((sum, { jobs }) => sum + jobs, 0),
          cost: backlogs.reduce((sum, { cost }) => sum + cost, 0),
        },
        engines: engines.slots.flatMap(({ process }) => process ?? []).map(({ resident }) => ({ resident })),
        inference: inference.stats(),
      });
    },
    reload() {
      watch.scan();
      for (const group of groups()) group.retry();
    },
    async close() {
      watch.close();
      await Promise.all([engines.close(), inference.close()]);
      clearInterval(checks);
    },
  };
}

/**
 * Whether the start is over: every model that was there has been tried, and a group is ready. Models that are added
 * later do not undo it.
 */
function createBeginning(revisions: Revisions, groups: () => readonly EngineGroup[]): () => boolean {
  let begun = false;
  return () => {
    begun ||=
      revisions.wanted().every(({ state, undecided }) => state !== 'loading' && !undecided) &&
      groups().some((group) => group.ready());
    return begun;
  };
}

/** Logs the names in the operator's addresses that no remote package has, once as long as they stay the same. */
function createStrayReport({ inferenceServers, logger }: EngineSettings): (found: readonly FoundPackage[]) => void {
  let told = '';
  return (packages) => {
    const models = straysOf(inferenceServers, packages);
    if (models.join() === told) return;
    told = models.join();
    if (models.length === 0) return;
    logger.warn({ models }, 'an address of an inference server is set for a model that has none');
  };
}
