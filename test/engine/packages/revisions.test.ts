/** Engines load first what is asked for. */
import test from 'ava';
import { Revisions } from '../../../src/engine/packages/revisions.ts';
import { scanPackages } from '../../../src/engine/packages/scan.ts';

import { modelsFolder } from '../support/packages.ts';

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
