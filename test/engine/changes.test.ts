/** Packages that come, change and go while decisions are made. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { eventually, job, startEngine, type TestEngine, terms } from './support/engine.ts';
import { keepDeciding } from './support/keep-deciding.ts';
import { encoderGraph, modelsFolder, TINY, writePackage } from './support/packages.ts';

const listed = (engine: TestEngine) =>
  engine
    .models()
    .map(({ id, revision, status, isDefault }) => `${id}@${revision} ${status}${isDefault ? ' default' : ''}`);

test('packages come, change and go without a failed request', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, { modelsDir, engines: 2 });
  const deciding = keepDeciding(t, engine, () => job());

  // Written elsewhere and moved in at once, and written in place.
  const staging = await modelsFolder(t, { id: 'moved' });
  await rename(join(staging, 'moved'), join(modelsDir, 'moved'));
  await writePackage(modelsDir, { revision: 'r2' });
  await eventually(() => listed(engine).filter((line) => line.includes('ready')).length === 3);
  t.deepEqual(listed(engine), ['moved@r1 ready default', 'tiny@r1 ready', 'tiny@r2 ready default']);

  // The same revision with another graph: a new generation takes over.
  t.is(deciding.answers.size, 1);
  await writePackage(modelsDir, { graph: encoderGraph(5) });
  await eventually(() => deciding.answers.size === 2);

  // A change that is broken leaves what works.
  const made = deciding.made();
  await writeFile(join(modelsDir, 'tiny', 'r1', 'model.json'), '{');
  await eventually(() => engine.log.some(({ message }) => message === 'a model package is broken'));
  await eventually(() => deciding.made() > made + 50);
  t.is(listed(engine)[1], 'tiny@r1 ready');

  const named = () =>
    engine.log
      .filter(({ message }) => message === 'the plain name tiny means this revision now')
      .map(({ fields }) => fields);
  t.deepEqual(named(), [
    { model: 'tiny@r1', before: undefined },
    { model: 'tiny@r2', before: 'r1' },
  ]);
  await rm(join(modelsDir, 'tiny', 'r2'), { recursive: true });
  await rm(join(modelsDir, 'moved'), { recursive: true });
  await eventually(() => listed(engine).length === 1);
  t.deepEqual(listed(engine), ['tiny@r1 ready default']);
  t.deepEqual(named().at(-1), { model: 'tiny@r1', before: 'r2' });
  t.deepEqual(await deciding.stop(), {});
});

test('r10 takes the plain name from r9, and the log says that r9 claims it in vain', async (t) => {
  const modelsDir = await modelsFolder(t, { revision: 'r9' });
  const engine = await startEngine(t, { modelsDir });
  await writePackage(modelsDir, { revision: 'r10' });
  await eventually(() => listed(engine).join() === 'tiny@r9 ready,tiny@r10 ready default');
  const said = engine.log.filter(({ message }) => message.includes('claims the plain name'));
  t.deepEqual(
    said.map(({ message }) => message),
    ['tiny@r9 claims the plain name, which tiny@r10 has'],
  );
});

test('a revision is switched off and on by its manifest', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, { modelsDir, scanIntervalMs: 60_000 });
  await writePackage(modelsDir, { manifest: { status: 'disabled' } });
  engine.reload();
  await eventually(() => listed(engine)[0] === 'tiny@r1 disabled default');
  await writePackage(modelsDir);
  engine.reload();
  await eventually(() => listed(engine)[0] === 'tiny@r1 ready default');
  t.is((await engine.score(job(), terms())).kind, 'scored');
});
