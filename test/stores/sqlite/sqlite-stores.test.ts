/** The embedded store: the shared suites, and what only a file can do. */

import { execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { REVOKED } from '../../../src/stores/key-store.ts';
import { claimFolder } from '../../../src/stores/sqlite/folder.ts';
import { WriteQueue } from '../../../src/stores/sqlite/write-queue.ts';
import { StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../../../src/stores/stores.ts';
import { openStores } from '../../support/open-stores.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { catalogStoreSuite, newOwner, record } from '../catalog-store-suite.ts';
import { keyOf, keyStoreSuite } from '../key-store-suite.ts';

const folder = temporaryFolder();
const file = join(folder, 'umpire.db');
const open = () => openStores({ UMPIRE_DATA_DIR: folder });
const stores = await open();
test.after.always(() => stores.close());

catalogStoreSuite(test.serial, 'sqlite', () => stores.catalogs);
keyStoreSuite(test.serial, 'sqlite', () => stores.keys);

test.serial(
  'what is written is there after closing and opening again, and for whoever has it open beside',
  async (t) => {
    const owner = newOwner();
    const key = keyOf(owner);
    const beside = await open();
    await stores.catalogs.create(owner, record('a'), UNBOUNDED, budget());
    await beside.keys.add(key, budget());
    t.deepEqual((await beside.catalogs.read(owner, 'a', budget()))?.record, record('a'));
    t.deepEqual(await stores.keys.find(key.hash, budget()), key);
    await beside.close();
    const again = await open();
    t.truthy(await again.catalogs.read(owner, 'a', budget()));
    await again.close();
  },
);

test('a claim on a folder is had by one, and is free when it is given back', (t) => {
  const place = temporaryFolder();
  const first = claimFolder(place);
  t.true(first.alone);
  t.false(claimFolder(place).alone);
  first.release();
  const third = claimFolder(place);
  t.true(third.alone);
  third.release();
});

test.serial("the files are their user's alone", async (t) => {
  await stores.catalogs.create(newOwner(), record('a'), UNBOUNDED, budget());
  const files = readdirSync(folder);
  t.true(files.includes('umpire.db') && files.includes('umpire.db-wal'));
  for (const name of files) t.is(statSync(join(folder, name)).mode & 0o777, 0o600, name);
});

test.serial('a thread that cannot write says so, and the next write tries another', async (t) => {
  const place = temporaryFolder();
  const queue = new WriteQueue(join(place, 'folder', 'umpire.db'));
  await t.throwsAsync(queue.opened(), { instanceOf: StoreUnavailable });
  const write = () => queue.write(budget(5_000), { sql: 'DELETE FROM catalogs WHERE id = :id', rows: [{ id: 'b' }] });
  await t.throwsAsync(write(), { instanceOf: StoreWriteUnconfirmed });
  await (await openStores({ UMPIRE_DATA_DIR: join(place, 'folder') })).close();
  t.is((await write()).changes, 0);
  await queue.close();
});

test.serial('records with broken content are corrupt, and stay as they are', async (t) => {
  const owner = newOwner();
  const database = new DatabaseSync(file);
  database
    .prepare(
      "INSERT INTO catalogs VALUES (?, 'broken', 'stamp', 'model', '[1]', '1', 'private', 'now', '{}', '{}', '')",
    )
    .run(owner);
  await t.throwsAsync(stores.catalogs.read(owner, 'broken', budget()), { instanceOf: StoreCorrupt });
  t.is((await stores.catalogs.create(owner, record('broken'), UNBOUNDED, budget())).kind, 'exists');
  const key = keyOf(owner);
  await stores.keys.add(key, budget());
  const rates = ['-1', '0', '1e-300', '5e-324', '1e999', '1e7', '"1"'].map((rate) => `{"perSecond":${rate},"burst":1}`);
  const bursts = ['0', '1e999', '1e8'].map((burst) => `{"perSecond":1,"burst":${burst}}`);
  for (const limits of [
    ...[...rates, ...bursts, 'null', '1'].map((rate) => `{"rate":${rate}}`),
    ...['{"quota":1e999}', '{"quota":0}', '{"concurrency":1e12}', 'oops', '[]x'],
  ]) {
    database.prepare('UPDATE keys SET limits = ? WHERE hash = ?').run(limits, key.hash);
    await t.throwsAsync(stores.keys.find(key.hash, budget()), { instanceOf: StoreCorrupt }, limits);
  }
  database.prepare("UPDATE keys SET limits = '{}' WHERE hash = ?").run(key.hash);
  for (const time of ['8700000000000000', '9000000000000000000', '-9000000000000000000']) {
    for (const column of ['ends_at', 'last_used_at']) {
      database.exec(
        `UPDATE keys SET ends_at = NULL, last_used_at = NULL, ${column} = ${time} WHERE owner = '${owner}'`,
      );
      await t.throwsAsync(stores.keys.find(key.hash, budget()), { instanceOf: StoreCorrupt }, `${column} ${time}`);
    }
  }
  database.prepare('DELETE FROM keys WHERE hash = ?').run(key.hash);
  database.close();
  t.true(await stores.catalogs.delete(owner, 'broken', budget()));
});

test.serial(
  'while another process holds the lock, writes wait for about a second without blocking, reads go on',
  async (t) => {
    const owner = newOwner();
    const holder = new DatabaseSync(file);
    holder.exec('BEGIN IMMEDIATE');
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 5);
    const started = performance.now();
    await t.throwsAsync(stores.catalogs.create(owner, record('a'), UNBOUNDED, budget(200)), {
      instanceOf: StoreUnavailable,
    });
    t.true(performance.now() - started < 4_000);
    t.true(ticks > 3, `the event loop ticked ${ticks} times`);
    t.is(await stores.catalogs.read(owner, 'a', budget()), undefined);
    const waiting = stores.catalogs.create(owner, record('a'), UNBOUNDED, budget(5_000));
    setTimeout(() => holder.exec('ROLLBACK'), 50);
    t.is((await waiting).kind, 'created');
    clearInterval(ticking);
    holder.close();
  },
);

test.serial('a file of the first schema is brought up to date, with what it holds', async (t) => {
  const place = temporaryFolder();
  const open = () => openStores({ UMPIRE_DATA_DIR: place });
  const fresh = await open();
  await fresh.catalogs.create('owner', record('a'), UNBOUNDED, budget());
  await fresh.close();
  const database = new DatabaseSync(join(place, 'umpire.db'));
  const later = [
    ...['calibrations', 'additions', 'examples'].map((name) => `catalogs DROP COLUMN ${name}`),
    ...['label', 'ended_by', 'last_used_at'].map((name) => `keys DROP COLUMN ${name}`),
  ];
  for (const change of later) database.exec(`ALTER TABLE ${change}`);
  database.exec('PRAGMA user_version = 1');
  database.close();
  const [one, other] = await Promise.all([open(), open()]);
  t.deepEqual((await one.catalogs.read('owner', 'a', budget()))?.record, record('a'));
  const stamp = (await other.catalogs.stamp('owner', 'a', budget())) ?? '';
  t.true(await other.catalogs.replace('owner', stamp, { ...record('a'), calibrations: { 'm@r1': 2 } }, budget()));
  t.deepEqual((await one.catalogs.read('owner', 'a', budget()))?.record.calibrations, { 'm@r1': 2 });
  await Promise.all([one.close(), other.close()]);
});

test.serial('what cannot be opened says why', async (t) => {
  const place = temporaryFolder();
  const opening = (at: string) => openStores({ UMPIRE_DATA_DIR: at });
  writeFileSync(join(place, 'umpire.db'), 'this is not a database, but long enough to be taken for one'.repeat(50));
  await t.throwsAsync(opening(place), { instanceOf: StoreCorrupt, message: /umpire\.db is damaged/ });
  t.true(readFileSync(join(place, 'umpire.db'), 'utf8').startsWith('this is not'));
  writeFileSync(join(place, 'file'), '');
  await t.throwsAsync(opening(join(place, 'file', 'folder')), { instanceOf: StoreUnavailable, message: /cannot open/ });
  const piped = join(place, 'piped');
  mkdirSync(piped);
  execFileSync('mkfifo', [join(piped, 'umpire.db')]);
  await t.throwsAsync(opening(piped), { instanceOf: StoreUnavailable, message: /is not a regular file/ });
  const newer = join(place, 'newer');
  await (await opening(newer)).close();
  const database = new DatabaseSync(join(newer, 'umpire.db'));
  database.exec('PRAGMA user_version = 99');
  database.close();
  await t.throwsAsync(opening(newer), { instanceOf: StoreUnavailable, message: /newer Umpire/ });
});

test.serial('every create that was acknowledged is there after kill -9, again and again', async (t) => {
  const place = temporaryFolder();
  const acknowledged: string[] = [];
  for (let round = 0; round < 5; round++) {
    const writer = fork(new URL('./writer.ts', import.meta.url), [place, `round-${round}`], { stdio: 'inherit' });
    writer.on('message', (id) => acknowledged.push(String(id)));
    // Some way into the writes, at no particular point of one.
    while (acknowledged.filter((id) => id.startsWith(`round-${round}`)).length < 10) await once(writer, 'message');
    writer.kill('SIGKILL');
    await once(writer, 'exit');
  }
  const survivors = await openStores({ UMPIRE_DATA_DIR: place });
  const found = new Set(await survivors.catalogs.list('owner', budget()));
  t.true(acknowledged.length >= 50);
  t.deepEqual(
    acknowledged.filter((id) => !found.has(id)),
    [],
  );
  for (const id of found)
    t.deepEqual((await survivors.catalogs.read('owner', id, budget()))?.record.choices, [id, 'other']);
  await survivors.close();
});

test.serial(
  'on a full disk catalogs are refused, keys are made and ended, and what is deleted makes room',
  async (t) => {
    const place = temporaryFolder();
    const script = fileURLToPath(new URL('full-disk.ts', import.meta.url));
    const inside = `mount -t tmpfs -o size=24m tmpfs '${place}' && exec '${process.execPath}' '${script}' '${place}'`;
    // A mount that only this command sees, and that goes with it.
    const child = spawn('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', inside], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
    if (/unshare|mount/.test(err) && out === '') {
      t.log(`no disk of its own can be made here: ${err.trim()}`);
      t.pass();
      return;
    }
    const steps = JSON.parse(out) as Record<string, unknown>;
    t.true(Number(steps.created) >= 5 && Number(steps.created) < 300, out + err);
    t.true(Number(steps.freeBytes) < 8_192, out);
    t.like(steps, {
      create: 'StoreUnavailable',
      end: true,
      add: true,
      delete: true,
      'create again': 'created',
      ended: REVOKED,
    });
  },
);
