/** Which packages of a folder are served. */
import test from 'ava';
import { startEngine } from '../support/engine.ts';
import { modelsFolder, writePackage } from '../support/packages.ts';

test('models and single revisions are served by name, and nothing else is loaded or listed', async (t) => {
  const modelsDir = await modelsFolder(t);
  for (const id of ['left', 'middle', 'right']) {
    for (const revision of ['r1', 'r2']) await writePackage(modelsDir, { id, revision });
  }
  const served = async (...models: readonly string[]) => {
    const engine = await startEngine(t, { modelsDir, models });
    return engine.models().map(({ id, revision, isDefault }) => `${id}@${revision}${isDefault ? ' by default' : ''}`);
  };
  t.is((await served()).length, 6);
  t.deepEqual(await served('left', 'right@r1'), ['left@r1', 'left@r2 by default', 'right@r1 by default']);
});

test('a name without a package is told once, and one that comes later is served', async (t) => {
  const modelsDir = await modelsFolder(t, { id: 'there' });
  const engine = await startEngine(t, { modelsDir, models: ['there', 'later'], scanIntervalMs: 20 });
  const told = () => engine.log.filter(({ message }) => message.startsWith('there is no package'));
  t.deepEqual(
    told().map(({ fields }) => fields.models),
    [['later']],
  );
  await writePackage(modelsDir, { id: 'later' });
  for (let tries = 0; engine.models().length < 2 && tries < 1000; tries++) await new Promise((r) => setTimeout(r, 10));
  t.deepEqual(
    engine.models().map(({ id }) => id),
    ['later', 'there'],
  );
  t.is(told().length, 1);
});
