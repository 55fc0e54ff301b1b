/** A store on a disk that fills up, told step by step on standard output. The folder is its only argument. */
import { statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { REVOKED } from '../../../src/stores/key-store.ts';
import { openStores } from '../../support/open-stores.ts';
import { record } from '../catalog-store-suite.ts';
import { keyOf } from '../key-store-suite.ts';

const [folder = ''] = process.argv.slice(2);
const stores = await openStores({ UMPIRE_DATA_DIR: folder });
const old = keyOf('owner');
await stores.keys.add(old, budget(5_000));

const steps: Record<string, unknown> = {};
const step = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  steps[name] = await work().catch((error: Error) => error.name);
};

let created = 0;
const large = (id: string) => record(id, ['x'.repeat(100_000), 'y'.repeat(100_000)]);
try {
  for (; created < 300; created++)
    await stores.catalogs.create('owner', large(`c${created}`), UNBOUNDED, budget(5_000));
} catch {
  // The disk is full of catalogs. Something else takes what is left.
  for (let size = 1 << 20; size >= 512; size /= 2) {
    try {
      writeFileSync(join(folder, `rest-${size}`), Buffer.alloc(size, 1));
    } catch {
      // Half of it may fit.
    }
  }
}
steps.created = created;
steps.freeBytes = statfsSync(folder).bavail * statfsSync(folder).bsize;
await step('create', () => stores.catalogs.create('owner', large('more'), UNBOUNDED, budget(5_000)));
await step('end', () => stores.keys.end(old.hash, REVOKED, 'revocation', budget(5_000)));
await step('add', () => stores.keys.add(keyOf('owner'), budget(5_000)));
await step('delete', () => stores.catalogs.delete('owner', 'c0', budget(5_000)));
await step(
  'create again',
  async () => (await stores.catalogs.create('owner', large('c0'), UNBOUNDED, budget(5_000))).kind,
);
await step('ended', async () => (await stores.keys.find(old.hash, budget(5_000)))?.endsAt);
await stores.close();
process.stdout.write(JSON.stringify(steps));
