/** The embedded store when its files are moved, deleted or replaced under a running service. */
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { REVOKED } from '../../../src/stores/key-store.ts';
import { StoreUnavailable } from '../../../src/stores/stores.ts';
import { createRecordedLog } from '../../support/log.ts';
import { openStores } from '../../support/open-stores.ts';
import { until } from '../../support/redis.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { newOwner, record } from '../catalog-store-suite.ts';
import { keyOf } from '../key-store-suite.ts';

test('a data file that is moved away, put back or replaced is noticed, and what lies there is the store', async (t) => {
  const place = temporaryFolder();
  const path = join(place, 'umpire.db');
  const log = createRecordedLog();
  const served = await openStores({ UMPIRE_DATA_DIR: place }, log);
  t.teardown(() => served.close());
  const owner = newOwner();
  const key = keyOf(owner);
  await served.keys.add(key, budget());
  await served.catalogs.create(owner, record('before'), UNBOUNDED, budget());
  const write = (id: string) => served.catalogs.create(owner, record(id), UNBOUNDED, budget());
  const becomes = (up: boolean) => until(() => served.health().up === up);

  renameSync(path, `${path}.moved`);
  // Nothing is acknowledged that nobody will read, even before the move has been noticed.
  await t.throwsAsync(write('lost'), { instanceOf: StoreUnavailable });
  await becomes(false);
  await t.throwsAsync(served.keys.find(key.hash, budget()), { instanceOf: StoreUnavailable });
  t.false(existsSync(path), 'no empty store in its place');
  renameSync(`${path}.moved`, path);
  await becomes(true);
  t.is((await write('back'))?.kind, 'created');

  // Another store in its place, with the files of the old one beside it still.
  renameSync(path, `${path}.moved`);
  const other = temporaryFolder();
  const beside = await openStores({ UMPIRE_DATA_DIR: other });
  await beside.keys.add({ ...key, endsAt: REVOKED, endedBy: 'revocation' }, budget());
  await beside.close();
  copyFileSync(join(other, 'umpire.db'), path);
  await becomes(false);
  await becomes(true);
  t.is((await served.keys.find(key.hash, budget()))?.endsAt, REVOKED);
  t.deepEqual(await served.catalogs.list(owner, budget()), []);
  t.is((await write('new'))?.kind, 'created');
  // Whoever opens the paths finds what was acknowledged there.
  const kept = (file: string) => {
    const database = new DatabaseSync(file, { readOnly: true });
    const ids = database
      .prepare('SELECT id FROM catalogs ORDER BY id')
      .all()
      .map((row) => row.id);
    database.close();
    return ids;
  };
  t.deepEqual(kept(path), ['new']);
  t.deepEqual(kept(`${path}.moved`), ['back', 'before']);
  t.deepEqual(
    log.lines.map(({ level, message }) => `${level}: ${message.split(/[,:]/)[0]}`),
    [
      'error: the data file was moved',
      'warn: the data file is back',
      'error: the data file was moved',
      'warn: opened the data file that lies there now',
    ],
  );
});

test('a write-ahead log that is deleted, and a folder that is moved, lose nothing that was acknowledged', async (t) => {
  const place = join(temporaryFolder(), 'data');
  const served = await openStores({ UMPIRE_DATA_DIR: place });
  t.teardown(() => served.close());
  const owner = newOwner();
  const write = async (id: string) => served.catalogs.create(owner, record(id), UNBOUNDED, budget(5_000));
  const written = async (id: string) => {
    for (let tries = 0; tries < 400; tries++) {
      const outcome = await write(id).catch((error: unknown) => error);
      if (!(outcome instanceof StoreUnavailable)) return outcome;
      await sleep(25);
    }
    return undefined;
  };
  await write('before');
  rmSync(join(place, 'umpire.db-wal'));
  rmSync(join(place, 'umpire.db-shm'));
  t.like(await written('after'), { kind: 'created' });
  const beside = await openStores({ UMPIRE_DATA_DIR: place });
  t.deepEqual(await beside.catalogs.list(owner, budget()), ['after', 'before']);
  await beside.close();
  renameSync(place, `${place}-moved`);
  await t.throwsAsync(write('lost'), { instanceOf: StoreUnavailable });
  renameSync(`${place}-moved`, place);
  t.like(await written('back'), { kind: 'created' });
  t.deepEqual(await served.catalogs.list(owner, budget()), ['after', 'back', 'before']);
});
