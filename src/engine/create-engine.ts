/** The engine as a whole: model packages, processes and pools, wired together. */
import type { Engine } from './engine.ts';
import { type EngineOptions, type EngineSettings, engineSettings } from './options.ts';
import { Revisions } from './packages/revisions.ts';
import { PackageWatch } from './packages/scan.ts';
import { selected, strangers, straysOf } from './packages/selection.ts';
import { withAddress } from './packages/servers.ts';
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
  const { models, inferenceServers } = settings;
  const missing = new Notice(settings, 'there is no package of models that are to be served');
  const strays = new Notice(settings, 'an address of an inference server is set for a model that has none');
  const watch = new PackageWatch(settings, (packages) => {
    missing.note(strangers(models, packages));
    strays.note(straysOf(inferenceServers, packages));
    revisions.apply(selected(models, packages).map((found) => withAddress(found, inferenceServers)));
    groups.rollOut();
  });
  await watch.scan();
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
    crowded: (terms) => groups.onlyPool?.admission.crowded(terms),
    prepare: (job, terms) => cascades.prepare(job, terms),
    ready: () => hasBegun() && groups.all.some((group) => group.ready()),
    stats: () => groups.stats(),
    reload() {
      void watch.scan();
      for (const group of groups.all) group.retry();
    },
    async close() {
      watch.close();
      await groups.close();
      clearInterval(checks);
    },
  };
}

/** Warns of models, once as long as they stay the same. */
class Notice {
  readonly #logger: EngineSettings['logger'];
  readonly #message: string;
  #told = '';

  constructor({ logger }: Pick<EngineSettings, 'logger'>, message: string) {
    this.#logger = logger;
    this.#message = message;
  }

  note(models: readonly string[]): void {
    if (models.length > 0 && models.join() !== this.#told) this.#logger.warn({ models }, this.#message);
    this.#told = models.join();
  }
}
