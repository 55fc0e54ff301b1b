/** Commands say which store they use, and none but those that add something makes one. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { describeStore, parseStoreSettings } from '../../src/stores/settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../support/terminal.ts';

const folder = temporaryFolder();

const umpire = (data: string, ...args: string[]) => runUmpire(args, { env: { UMPIRE_DATA_DIR: data } });

const labels = join(folder, 'labels.jsonl');
writeFileSync(labels, '');

for (const args of [
  ['keys', 'list'],
  ['keys', 'export'],
  ['keys', 'rotate', 'key_0000000000000000'],
  ['keys', 'revoke', 'key_0000000000000000'],
  ['catalogs', 'list', '--owner', 'acme'],
  ['catalogs', 'export', '--owner', 'acme'],
  ['catalogs', 'delete', '--owner', 'acme', 'x'],
  ['learn', '--owner', 'acme', '--catalog', 'x', labels],
  ['backup', join(folder, 'backup')],
]) {
  test(`${args.slice(0, 2).join(' ')}: no store is made, and the one that is missing is named`, async (t) => {
    const data = join(folder, `typo-${args.slice(0, 2).join('-').replaceAll('/', '')}`);
    const { status, out, err } = await umpire(data, ...args);
    t.is(status, 1);
    t.is(out, '');
    t.true(err.includes(`there is no store at ${join(data, 'umpire.db')}`), err);
    t.false(existsSync(data));
    t.false(existsSync(join(folder, 'backup')));
  });
}

test('the store is named on standard error, and that it is new', async (t) => {
  const data = join(folder, 'fresh', 'data');
  const place = join(data, 'umpire.db');
  const firstSaid = async (...args: string[]) => linesOf((await umpire(data, ...args)).err)[0];
  t.is(await firstSaid('keys', 'create', '--owner', 'acme'), `store: ${place} (new)`);
  t.is(await firstSaid('keys', 'create', '--owner', 'acme'), `store: ${place}`);
  t.is(await firstSaid('keys', 'list'), `store: ${place}`);
});

test('Redis is named by its address, never with a password', (t) => {
  const nameOf = (env: Record<string, string>): string => describeStore(parseStoreSettings(env).value);
  t.is(nameOf({ REDIS_URL: 'redis://me:secret@redis.example/3' }), 'redis://redis.example:6379/3');
  t.is(nameOf({ REDIS_URL: 'rediss://redis.example:7000' }), 'rediss://redis.example:7000/0');
  t.is(
    nameOf({ REDIS_URL: 'redis://:secret@x', REDIS_SENTINELS: 'a:1, b:2', REDIS_SENTINEL_NAME: 'main' }),
    "Redis 'main' by the Sentinels at a:1,b:2, database 0",
  );
  t.is(nameOf({ REDIS_CLUSTER: 'a:1,b:2' }), 'the Redis cluster at a:1,b:2');
});

test('a folder that cannot be made is refused at once', async (t) => {
  const started = performance.now();
  for (const data of ['/proc/nope', '/proc/nope/deeper', join(labels, 'data')]) {
    const { status, err } = await umpire(data, 'keys', 'create', '--owner', 'acme');
    t.is(status, 1);
    t.regex(err, /cannot open .*umpire\.db: E(NOENT|ACCES|NOTDIR|PERM)/);
  }
  t.true(performance.now() - started < 5_000);
});
