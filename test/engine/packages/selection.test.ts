/** Which packages of a folder are served. */
import test from 'ava';
import { Revisions } from '../../../src/engine/packages/revisions.ts';
import { scanPackages } from '../../../src/engine/packages/scan.ts';
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

test('what decisions wait for is loaded first, then the usual model, and last what has failed', async (t) => {
  const folder = await modelsFolder(t, { id: 'aa' }, { id: 'umpire-mini' }, { id: 'zz' });
  const revisions = new Revisions({ debug() {}, info() {}, warn() {}, error() {} }, { retired() {}, unavailable() {} });
  revisions.apply(await scanPackages(folder));
  const order = () => revisions.wanted().map(({ manifest }) => manifest.id);
  t.deepEqual(order(), ['umpire-mini', 'aa', 'zz']);
  const asked = revisions.find('zz', 'r1');
  if (asked === undefined) throw new Error('there is no zz@r1');
  revisions.count(asked, 1);
  t.deepEqual(order(), ['zz', 'umpire-mini', 'aa']);
  revisions.failed(asked, ['broken']);
  t.deepEqual(order(), ['umpire-mini', 'aa', 'zz']);
});
