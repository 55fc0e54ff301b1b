/** The engine as a whole: model packages, processes and pools, wired together. */
import type { Engine } from './engine.ts';
import { type EngineOptions, type EngineSettings, engineSettings } from './options.ts';
import { Revisions } from './packages/revisions.ts';
import { createPackageWatch, type FoundPackage } from './packages/scan.ts';
import { createSelection } from './packages/selection.ts';
import { straysOf, withAddress } from './packages/servers.ts';
import { Cascades } from './pool/cascades.ts';
import { EngineGroups } from './pool/engine-groups.ts';
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
  const revisions: Revisions = new Revisions(settings.logger, {
    retired: (revision) => groups.retired(revision),
    unavailable(revision) {
      for (const { pool } of groups.all) pool.unavailable(revision);
    },
  });
  const groups = new EngineGroups(settings, revisions);
  const cascades = new Cascades(revisions, groups);
  const reportStrays = createStrayReport(settings);
  const select = createSelection(settings.models, settings.logger);
  const watch = createPackageWatch(settings, (packages) => {
    reportStrays(packages);
    revisions.apply(select(packages).map((found) => withAddress(found, settings.inferenceServers)));
    groups.rollOut();
  });
  await watch.scanned;
  if (settings.cacheDir !== '') await tidyCache(settings.cacheDir);
  groups.start();
  /** Whether the start is over; models that are added later do not undo it. */
  let begun = false;
  const hasBegun = (): boolean => {
    begun ||=
      revisions.wanted().every(({ state, undecided }) => state !== 'loading' && !undecided) &&
      groups.all.some((group) => group.ready());
    return begun;
  };
  const interval = Math.min(CHECK_INTERVAL, settings.stuckAfterMs / 4);
  let lastCheck = performance.now();
  const checks = setInterval(() => {
    hasBegun();
    // Cascades change with their steps, and the log is to say so soon.
    revisions.models();
    const now = performance.now();
    const heldUp = Math.max(0, now - lastCheck - interval);
    lastCheck = now;
    for (const group of groups.all) group.check(heldUp);
  }, interval);

  return {
    models: () => revisions.models(),
    score: (job, terms) => cascades.score(job, terms),
    // A decision for an inference server does not wait for the engines here.
    crowded: (terms) => groups.onlyPool?.crowded(terms),
    prepare: (job, terms) => cascades.prepare(job, terms),
    ready: () => hasBegun() && groups.all.some((group) => group.ready()),
    stats: () => groups.stats(),
    reload() {
      watch.scan();
      for (const group of groups.all) group.retry();
    },
    async close() {
      watch.close();
      await groups.close();
      clearInterval(checks);
    },
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
