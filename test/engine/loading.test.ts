/** Models are loaded while others decide: at a start, when packages come, and when an engine is replaced. */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { usableModel } from '../../src/domain/models.ts';
import type { ScoreJob } from '../../src/engine/engine.ts';
import { checkPackage } from '../../src/engine/package-tools/check.ts';
import { eventually, job, SILENT, startEngine, type TestEngine, terms } from './support/engine.ts';
import { enginesOf } from './support/engine-processes.ts';
import { keepDeciding } from './support/keep-deciding.ts';
import { modelsFolder, slowEncoderGraph, TINY, writePackage } from './support/packages.ts';

/** A package that takes seconds to load, since it is measured: `products` makes a run of it long. */
const slowToLoad = (products: number) => ({
  graph: slowEncoderGraph(products),
  manifest: { limits: { input_tokens: 40, candidate_tokens: 12, choices: 2 } },
});

/** Requests for the model that a plain name means when each is made. */
function requestsByName(engine: TestEngine, name: string): () => ScoreJob {
  let made = 0;
  return () => {
    const { id, revision } = usableModel(engine.models(), name);
    return job({ model: id, revision, input: `abc ${made++ % 7}` });
  };
}

const statusOf = (engine: TestEngine, name: string) =>
  engine.models().find(({ id, revision }) => `${id}@${revision}` === name)?.status;
const defaultOf = (engine: TestEngine, id: string) =>
  engine.models().find((model) => model.id === id && model.isDefault)?.revision;

const failuresOf = (engine: TestEngine, name: string) =>
  engine.log.filter(({ message, fields }) => message === 'a model cannot be served' && fields.model === name).length;

test.serial(
  'ready is said when every model has been loaded or has failed, and the first decisions are fast',
  async (t) => {
    const modelsDir = await modelsFolder(
      t,
      TINY,
      { id: 'unfit', graph: Buffer.from('this is no graph') },
      { id: 'zz', ...slowToLoad(8) },
    );
    const engine = await startEngine(t, { modelsDir, engines: 2, modelRetryMs: 60_000 }, 'started');
    const began = performance.now();
    await eventually(() => engine.ready());
    const loading = performance.now() - began;
    const found = engine.models().map(({ id, status }) => `${id} ${status}`);
    t.deepEqual(found, ['tiny ready', 'unfit unavailable', 'zz ready']);
    const first = performance.now();
    t.is((await engine.score(job(), terms())).kind, 'scored');
    const took = performance.now() - first;
    t.true(took < loading / 4, `the first decision took ${took} ms, loading ${loading} ms`);
  },
);

test.serial('a start decides with the models that it has while it loads the others', async (t) => {
  const slow = slowToLoad(8);
  const modelsDir = await modelsFolder(t, TINY, { id: 'yy', ...slow }, { id: 'zz', ...slow });
  const engine = await startEngine(t, { modelsDir, engines: 1 }, 'started');
  await eventually(() => statusOf(engine, 'tiny@r1') === 'ready');
  t.is((await engine.score(job(), terms())).kind, 'scored');
  t.is(statusOf(engine, 'zz@r1'), 'unavailable');
  t.false(engine.ready());
});

test.serial('a model that was too slow once is measured again before ready is said without it', async (t) => {
  const modelsDir = await modelsFolder(t);
  const limits = { input_tokens: 40, candidate_tokens: 12, choices: 2 };
  await writePackage(modelsDir, { manifest: { limits } });
  await writePackage(modelsDir, { id: 'zz', graph: slowEncoderGraph(3), manifest: { limits } });
  const worst = async (): Promise<number> => {
    const checked = await checkPackage({ modelsDir, logger: SILENT }, 'zz', 'r1');
    return checked.kind === 'sound' ? checked.speed.worst : Number.NaN;
  };
  // How slow the model looks depends on what else the machine does just then, so what it should be is tried a few
  // times.
  for (let tries = 5; tries > 0; tries--) {
    const largestRequestMs = Math.min(await worst(), await worst()) / 1.4;
    const engine = await startEngine(t, { modelsDir, largestRequestMs, modelRetryMs: 50 }, 'started');
    await eventually(() => engine.ready());
    t.is(statusOf(engine, 'tiny@r1'), 'ready');
    if (failuresOf(engine, 'zz@r1') >= 3) return;
  }
  t.fail('it was never measured three times');
});

test.serial(
  'a model far too slow is tried again by SIGHUP or when it changes, and ready is said without it',
  async (t) => {
    const modelsDir = await modelsFolder(t);
    const limits = { input_tokens: 40, candidate_tokens: 12, choices: 2 };
    await writePackage(modelsDir, { manifest: { limits } });
    await writePackage(modelsDir, { id: 'zz', graph: slowEncoderGraph(6), manifest: { limits } });
    const engine = await startEngine(t, { modelsDir, largestRequestMs: 8, modelRetryMs: 50 }, 'started');
    const failures = () => failuresOf(engine, 'zz@r1');
    await eventually(() => engine.ready());
    t.is(failures(), 1);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    t.is(failures(), 1);
    engine.reload();
    await eventually(() => failures() === 2);
    await writePackage(modelsDir, { id: 'zz', manifest: { limits } });
    await eventually(() => statusOf(engine, 'zz@r1') === 'ready');
  },
);

for (const place of ['at the start', 'beside an engine that serves']) {
  test.serial(`a sound model does not wait for another try of one that failed, ${place}`, async (t) => {
    const modelsDir = await modelsFolder(t);
    const limits = { input_tokens: 40, candidate_tokens: 12, choices: 2 };
    const writeBoth = async (folder: string): Promise<void> => {
      await writePackage(folder, { id: 'aa', graph: slowEncoderGraph(6), manifest: { limits } });
      await writePackage(folder, { id: 'zz', manifest: { limits } });
    };
    if (place === 'at the start') await writeBoth(modelsDir);
    else await writePackage(modelsDir, { manifest: { limits } });
    const options = { largestRequestMs: 8, modelRetryMs: 1, tooSlowRetryMs: 1 };
    const engine = await startEngine(t, { modelsDir, ...options }, 'started');
    if (place !== 'at the start') {
      await eventually(() => engine.ready());
      const staging = await modelsFolder(t);
      await writeBoth(staging);
      for (const id of ['aa', 'zz']) await rename(join(staging, id), join(modelsDir, id));
    }
    await eventually(() => statusOf(engine, 'zz@r1') === 'ready');
    t.is(failuresOf(engine, 'aa@r1'), 1);
    // It is tried again, in a process that nothing else waits for.
    await eventually(() => failuresOf(engine, 'aa@r1') > 1);
    t.is(statusOf(engine, 'zz@r1'), 'ready');
  });
}

for (const engines of [1, 2]) {
  test.serial(`a model that comes is loaded beside: ${engines} engine(s) decide meanwhile`, async (t) => {
    const modelsDir = await modelsFolder(t, TINY);
    const engine = await startEngine(t, { modelsDir, engines });
    // An engine that is still beginning would load the new model itself, and nothing would take its place.
    await eventually(() => engine.stats().engines.length === engines);
    const deciding = keepDeciding(t, engine, requestsByName(engine, 'tiny'));
    let most = 0;
    let before = 0;
    // Looks, and how many in a row saw no new decision: a machine that stands still for a while delays the look, too. A
    // look holds up the decisions, and on a busy machine lasts longer than an interval: so each has a pause behind it.
    let looks = 0;
    let without = 0;
    let mostWithout = 0;
    const look = (): void => {
      most = Math.max(most, enginesOf().length);
      looks++;
      without = deciding.made() > before ? 0 : without + 1;
      mostWithout = Math.max(mostWithout, without);
      before = deciding.made();
      looking.refresh();
    };
    const looking = setTimeout(look, 50);
    t.teardown(() => clearTimeout(looking));
    const staging = await modelsFolder(t, { id: 'zz', ...slowToLoad(12) });
    await rename(join(staging, 'zz'), join(modelsDir, 'zz'));
    await eventually(() => {
      t.true(engine.ready());
      return statusOf(engine, 'zz@r1') === 'ready';
    });
    const loading = looks;
    const ends = () => engine.log.filter(({ message }) => /^an engine (has|did)/.test(message));
    await eventually(() => ends().length >= engines);
    t.deepEqual(
      ends().map(({ message, fields }) => `${message}: ${fields.reason}`),
      new Array(engines).fill('an engine has ended: exited with code 0'),
    );
    clearTimeout(looking);
    t.deepEqual(await deciding.stop(), {});
    t.true(mostWithout < loading / 3, `no decision for ${mostWithout} looks, loading ${loading} looks`);
    t.true(most <= engines + 1, `${most} engines at a time`);
    t.is((await engine.score(job({ model: 'zz' }), terms())).kind, 'scored');
    t.is(engine.stats().restarts, 0);
  });
}

test.serial('a new revision never takes its model down: a sound, a slow and broken ones under load', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, { modelsDir, modelRetryMs: 500 });
  const deciding = keepDeciding(t, engine, requestsByName(engine, 'tiny'));
  const staging = await modelsFolder(t);
  const moveIn = async (revision: string, source: object): Promise<void> => {
    await writePackage(staging, { revision, ...source });
    await rename(join(staging, 'tiny', revision), join(modelsDir, 'tiny', revision));
  };
  const failed = (name: string) =>
    eventually(() =>
      engine.log.some(({ message, fields }) => message === 'a model cannot be served' && fields.model === name),
    );

  await moveIn('r2', {});
  await eventually(() => defaultOf(engine, 'tiny') === 'r2');

  await moveIn('r3', slowToLoad(6));
  await eventually(() => statusOf(engine, 'tiny@r3') === 'unavailable');
  t.is(defaultOf(engine, 'tiny'), 'r2', 'until the new one has made its canary decision');
  await eventually(() => defaultOf(engine, 'tiny') === 'r3');
  t.is(statusOf(engine, 'tiny@r3'), 'ready');

  const canary = { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'xyz' };
  await moveIn('r4', { manifest: { canary } });
  await moveIn('r5', { graph: Buffer.from('this is no graph') });
  await moveIn('r6', { options: { temperature: -1 } });
  for (const name of ['tiny@r4', 'tiny@r5', 'tiny@r6']) await failed(name);
  await moveIn('r7', { manifest: { status: 'disabled' } });
  await eventually(() => statusOf(engine, 'tiny@r7') === 'disabled');
  const made = deciding.made();
  await eventually(() => deciding.made() > made + 5);
  t.is(defaultOf(engine, 'tiny'), 'r3', 'for good where it never does');
  t.deepEqual(await deciding.stop(), {});
  t.deepEqual([...deciding.revisions].sort(), ['r1', 'r2', 'r3']);
});

test.serial('an engine that ends while it loads beside takes nothing with it, and another one loads', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, { modelsDir, modelRetryMs: 200 });
  const before = enginesOf();
  const deciding = keepDeciding(t, engine, requestsByName(engine, 'tiny'));
  await writePackage(modelsDir, { id: 'zz', ...slowToLoad(8) });
  const beside = () => enginesOf().filter((pid) => !before.includes(pid));
  for (let deaths = 0; deaths < 2; deaths++) {
    await eventually(() => beside().length === 1);
    const [pid = 0] = beside();
    await new Promise((resolve) => setTimeout(resolve, 200));
    process.kill(pid, 'SIGKILL');
    await eventually(() => !beside().includes(pid));
    t.true(engine.ready());
  }
  await writePackage(modelsDir, { id: 'yy' });
  await eventually(() => statusOf(engine, 'zz@r1') === 'ready' && statusOf(engine, 'yy@r1') === 'ready');
  t.deepEqual(await deciding.stop(), {});
});

test.serial('what is served and could not be loaded again is served on, and what is new beside it', async (t) => {
  const modelsDir = await modelsFolder(t);
  const folder = await writePackage(modelsDir);
  const engine = await startEngine(t, { modelsDir, modelRetryMs: 60_000 });
  const deciding = keepDeciding(t, engine, requestsByName(engine, 'tiny'));
  // A revision that callers have seen is never changed, but if it is, it must not end what works.
  await writePackage(modelsDir, { graph: Buffer.from('this is no graph') });
  await eventually(() =>
    engine.log.some(
      ({ message }) =>
        message === 'an engine cannot load a model that others serve' || message === 'a model cannot be served',
    ),
  );
  t.truthy(folder);
  await writePackage(modelsDir, { id: 'zz' });
  await eventually(() => statusOf(engine, 'zz@r1') === 'ready');
  const made = deciding.made();
  await eventually(() => deciding.made() > made + 50);
  t.is((await engine.score(job({ model: 'zz' }), terms())).kind, 'scored');
  t.deepEqual(await deciding.stop(), {});
});

test.serial('jobs for a model that goes while another comes are done', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const staging = await modelsFolder(t);
  await writePackage(modelsDir, {
    id: 'slow',
    graph: slowEncoderGraph(6),
    options: { joint_weight: 0 },
    manifest: { limits: { input_tokens: 40, candidate_tokens: 12, choices: 10 } },
  });
  await writePackage(staging, { id: 'zz' });
  const engine = await startEngine(t, { modelsDir });
  const choices = Array.from({ length: 4 }, (_, i) => `c${i}`);
  const accepted = Array.from({ length: 12 }, (_, i) =>
    engine.score(job({ model: 'slow', input: `abc ${i}`, choices: choices.map((each) => `${each} ${i}`) }), terms()),
  );
  const prepared = engine.prepare(job({ model: 'tiny', choices }), terms());
  await rename(join(modelsDir, 'slow'), join(staging, 'slow'));
  await rename(join(staging, 'zz'), join(modelsDir, 'zz'));
  engine.reload();
  await eventually(() => statusOf(engine, 'zz@r1') === 'ready');
  const kinds = (await Promise.all(accepted)).map(({ kind }) => kind);
  t.deepEqual(kinds, new Array(12).fill('scored'));
  t.is((await prepared).kind, 'prepared');
  await eventually(() => enginesOf().length === 1);
});
