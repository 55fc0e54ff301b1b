/** The engine as a whole: model packages, engine processes and the pool, wired together. */
import type { Engine } from './engine.ts';
import { type EngineOptions, engineSettings } from './options.ts';
import { createPackageWatch } from './packages/watch.ts';
import { createEngineSlot, type EngineSlot } from './pool/engine-slot.ts';
import { createModelLoading } from './pool/model-loading.ts';
import { createPool } from './pool/pool.ts';
import { createTally } from './pool/tally.ts';
import { createRevisions } from './revisions.ts';

const checkInterval = 250;
/** How long an engine may take to end once it has nothing to do, milliseconds. */
const endingGrace = 5000;

/**
 * Starts the engine processes and looks for models. Resolves when the packages are known, without waiting for them to be loaded: until then they
 * are `unavailable`. A models folder that cannot be read is logged and looked for again; it does not fail the start.
 */
export async function createEngine(options: EngineOptions): Promise<Engine> {
  const settings = engineSettings(options);
  const slots: EngineSlot[] = [];
  const revisions = createRevisions(
    settings.logger,
    ({ key }) => {
      for (const slot of slots) slot.unload(key);
    },
    (revision) => pool.unavailable(revision),
  );
  const tally = createTally();
  const pool = createPool(settings, revisions, slots);
  const loading = createModelLoading(settings, revisions, slots, () => pool.dispatch());
  const watch = createPackageWatch(settings, (packages) => {
    revisions.apply(packages);
    void loading.rollOut();
  });
  await watch.scanned;

  for (let index = 0; index < settings.engines; index++) {
    slots.push(
      createEngineSlot(index, settings, {
        wanted: () => loading.wanted(),
        loaded: (process, revision, outcome) => loading.loaded(process, revision, outcome),
        finished: (process, job, result, occupied) => {
          tally.finished(result);
          pool.finished(process, job, result, occupied);
        },
        lost: (process, jobs, reason) => {
          tally.ended(reason);
          pool.lost(process, jobs, reason);
        },
      }),
    );
  }
  const checks = setInterval(
    () => {
      for (const slot of slots) slot.check();
    },
    Math.min(checkInterval, settings.stuckAfterMs / 4),
  );

  return {
    models: () => revisions.models(),
    score: (job, terms) => pool.score(job, terms),
    prepare: (job, terms) => pool.prepare(job, terms),
    ready: () => slots.some(({ process }) => process !== undefined && process.models.size > 0),
    stats: () =>
      tally.read({
        queue: pool.backlog(),
        engines: slots.flatMap(({ process }) => process ?? []).map(({ resident }) => ({ resident })),
      }),
    reload: () => watch.scan(),
    async close() {
      watch.close();
      loading.close();
      await pool.close();
      clearInterval(checks);
      await Promise.all(slots.map((slot) => slot.close(endingGrace)));
    },
  };
}
