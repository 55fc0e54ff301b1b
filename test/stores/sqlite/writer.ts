/**
 * A process that creates catalogs in a folder until it is killed, and tells its parent of each that was acknowledged.
 */

import { createStoreBudget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { openStores } from '../../support/open-stores.ts';
import { record } from '../catalog-store-suite.ts';

const [folder = '', prefix = ''] = process.argv.slice(2);
const stores = await openStores({ UMPIRE_DATA_DIR: folder });
for (let count = 0; ; count++) {
  const id = `${prefix}.${count}`;
  const outcome = await stores.catalogs.create('owner', record(id, [id, 'other']), UNBOUNDED, createStoreBudget(5_000));
  if (outcome.kind === 'created') process.send?.(id);
}
