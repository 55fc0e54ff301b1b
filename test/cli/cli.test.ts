/**
 * The operator's command, on both stores, beside stores that are open, and where their records are broken or deceive.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { hashKey, isKey } from '../../src/domain/keys.ts';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import { UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { modelsFolder } from '../engine/support/packages.ts';
import { newOwner, record } from '../stores/catalog-store-suite.ts';
import { openEmbedded, openStores } from '../support/open-stores.ts';
import { startRedis } from '../support/redis.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../support/terminal.ts';

type Env = Readonly<Record<string, string>>;

const [embedded, redis] = [await openEmbedded(), await startRedis()];
const shared = await openStores({ REDIS_URL: redis.url });
test.after.always(async () => {
  await shared.close();
  await embedded.close();
  await redis.stop();
});
const places = {
  sqlite: { env: { UMPIRE_DATA_DIR: embedded.folder } as Env, stores: embedded },
  redis: { env: { REDIS_URL: redis.url } as Env, stores: shared },
};

/** Runs a command whose words are separated by spaces, or given one by one. */
async function run(env: Env, args: string | readonly string[], input = '') {
  const words = typeof args === 'string' ? args.split(' ') : args;
  const { status, out, err } = await runUmpire(words, { env, input });
  return { status, out: linesOf(out), err: linesOf(err) };
}

/** The id in the line that announces a key. */
const idIn = (lines: readonly string[]): string => /key_[0-9A-Za-z]{16}/.exec(lines.join('\n'))?.[0] ?? '';

for (const [name, { env, stores }] of Object.entries(places)) {
  const stateOf = async (key: string) => stores.keys.find(hashKey(key), budget());

  test.serial(`${name}: a key is made, its secret the last line, and works at once`, async (t) => {
    const owner = newOwner();
    const { status, out } = await run(env, `keys create --owner ${owner} --rate 5/s --concurrency 3 --quota off`);
    t.is(status, 0);
    const key = out.at(-1) ?? '';
    t.true(isKey(key));
    t.like(await stateOf(key), { owner, limits: { rate: { perSecond: 5, burst: 10 }, concurrency: 3, quota: 'off' } });
    const list = await run(env, `keys list --owner ${owner}`);
    t.is(list.out.length, 2);
    t.regex(list.out[1] ?? '', /live +rate 5\/s, burst 10; concurrency 3; quota off$/);
    t.false(list.out.join().includes(key.slice(9)));
  });

  test.serial(`${name}: a rotated key keeps owner and limits; the old one ends, at once or later`, async (t) => {
    const owner = newOwner();
    const first = await run(env, `keys create --owner ${owner} --quota 7`);
    const second = await run(env, `keys rotate ${idIn(first.out)} --grace 1h`);
    t.is(second.status, 0);
    const [oldKey, newKey] = [first.out.at(-1) ?? '', second.out.at(-1) ?? ''];
    t.not(oldKey, newKey);
    t.like(await stateOf(newKey), { owner, limits: { quota: 7 } });
    const left = ((await stateOf(oldKey))?.endsAt ?? 0) - Date.now();
    t.true(left > 3_500_000 && left <= 3_600_000);
    const newest = (await stateOf(newKey))?.keyId;
    const third = await run(env, `keys rotate ${newest}`);
    t.true(((await stateOf(newKey))?.endsAt ?? Number.POSITIVE_INFINITY) <= Date.now());
    t.is((await stateOf(third.out.at(-1) ?? ''))?.endsAt, undefined);
    t.regex((await run(env, `keys rotate ${newest}`)).err.join(), /has ended/);
    // The old one is in its grace time, which its holder was promised.
    const again = await run(env, `keys rotate ${idIn(first.out)}`);
    t.is(again.status, 1);
    t.regex(again.err.join(), /was rotated already and works until 20/);
    t.true(((await stateOf(oldKey))?.endsAt ?? 0) > Date.now());
    const { out } = await run(env, `keys list --owner ${owner}`);
    t.is(out.filter((line) => / rotated +\S/.test(line)).length, 1);
    t.is(out.filter((line) => / ends 20/.test(line)).length, 1);
  });

  test.serial(`${name}: keys of one owner are told apart by label and last use, also by programs`, async (t) => {
    const owner = newOwner();
    const [crawler] = [
      await run(env, ['keys', 'create', '--owner', owner, '--label', 'the crawler']),
      await run(env, `keys create --owner ${owner}`),
    ];
    const key = crawler.out.at(-1) ?? '';
    await stores.keys.used(new Map([[hashKey(key), Date.parse('2026-05-05T05:05:05Z')]]), budget());
    const table = await run(env, `keys list --owner ${owner}`);
    t.is(table.out.filter((line) => / the crawler .* 2026-05-05T05:05:05\.000Z +live/.test(line)).length, 1);
    t.is(table.out.filter((line) => / never +live/.test(line)).length, 1);
    const list = JSON.parse((await run(env, `keys list --owner ${owner} --json`)).out.join('')) as object[];
    t.is(list.length, 2);
    t.like(
      list.find((each) => 'label' in each && each.label === 'the crawler'),
      {
        key_id: idIn(crawler.out),
        owner,
        last_used_at: '2026-05-05T05:05:05.000Z',
        state: 'live',
        ends_at: null,
      },
    );
    t.false(JSON.stringify(list).includes(key.slice(9)));
    const rotated = await run(env, `keys rotate ${idIn(crawler.out)}`);
    t.is((await stateOf(rotated.out.at(-1) ?? ''))?.label, 'the crawler');
    t.deepEqual((await run(env, `keys list --owner ${newOwner()} --json`)).out, ['[]']);
    t.regex((await run(env, `keys list --owner ${newOwner()}`)).err.join('\n'), /there are none/);
  });

  test.serial(`${name}: a key is revoked by its id, or by itself from standard input`, async (t) => {
    const owner = newOwner();
    const [one, other] = [
      await run(env, `keys create --owner ${owner}`),
      await run(env, `keys create --owner ${owner}`),
    ];
    t.is((await run(env, `keys revoke ${idIn(one.out)}`)).status, 0);
    t.is((await run(env, 'keys revoke -', `${other.out.at(-1)}\n`)).status, 0);
    for (const { out } of [one, other]) t.true(((await stateOf(out.at(-1) ?? ''))?.endsAt ?? 0) <= Date.now());
    t.is((await run(env, `keys list --owner ${owner}`)).out.filter((line) => / revoked +\S/.test(line)).length, 2);
    t.is((await run(env, 'keys revoke key_0000000000000000')).status, 1);
    t.is((await run(env, 'keys revoke -', 'junk')).status, 1);
    const onCommandLine = await run(env, `keys revoke ${one.out.at(-1)}`);
    t.is(onCommandLine.status, 2);
    t.false(onCommandLine.err.join().includes(one.out.at(-1) ?? 'x'));
  });

  test.serial(`${name}: an owner's catalogs are listed and deleted, unreadable ones, too`, async (t) => {
    const owner = newOwner();
    await stores.catalogs.create(owner, record('a', ['x', 'y', 'z']), UNBOUNDED, budget());
    await stores.catalogs.create(owner, record('b'), UNBOUNDED, budget());
    const { out } = await run(env, `catalogs list --owner ${owner}`);
    t.regex(out[1] ?? '', /^a +minilm-l6 +1 +3 +2026-01-02/);
    t.is(out.length, 3);
    t.like(JSON.parse((await run(env, `catalogs list --owner ${owner} --json`)).out.join('')), [
      { id: 'a', model: 'minilm-l6', choices: 3, readable: true },
      { id: 'b' },
    ]);
    t.is((await run(env, `catalogs delete --owner ${owner} a b`)).status, 0);
    t.is((await run(env, `catalogs delete --owner ${owner} a`)).status, 1);
    t.deepEqual(await stores.catalogs.list(owner, budget()), []);
  });
}

test.serial('a store that is away or badly named ends with status 1 and says so', async (t) => {
  const away = await run({ REDIS_URL: 'redis://127.0.0.1:1' }, 'keys list');
  t.is(away.status, 1);
  t.regex(away.err.join(), /Redis is away \(connect ECONNREFUSED 127\.0\.0\.1:1\)/);
  const wrong = await run({ REDIS_URL: 'nonsense' }, 'keys list');
  t.is(wrong.status, 1);
  t.regex(wrong.err.join(), /REDIS_URL/);
});

test('models list and check say which revision has the plain name, and which claims it in vain', async (t) => {
  const env = { UMPIRE_MODELS_DIR: await modelsFolder(t, { revision: 'r9' }, { revision: 'r10' }) };
  const vain = 'tiny@r9 claims the plain name, which tiny@r10 has';
  const list = await run(env, 'models list');
  t.regex(list.out.at(-1) ?? '', /^tiny +r10 +yes /);
  t.deepEqual(list.err, [vain]);
  t.regex((await run(env, 'models check tiny@r9')).out.at(-1) ?? '', new RegExp(`^ +${vain}$`));
  t.notRegex((await run(env, 'models check tiny')).out.join(), /in vain|claims/);
});

test.serial('models are listed and checked; a broken one ends with status 1', async (t) => {
  const list = await run({}, 'models list');
  t.is(list.status, 0);
  t.true(
    list.out.some((line) => /^minilm-l6 +r2 .* complete /.test(line)),
    list.out.join('\n'),
  );
  t.like(JSON.parse((await run({}, 'models list --json')).out.join('')), [{ id: 'minilm-l6', state: 'complete' }]);
  const check = await run({}, 'models check minilm-l6');
  t.is(check.status, 0, check.err.join('\n'));
  t.regex(check.out.join('\n'), /^minilm-l6@r2: sound, loaded in \d+ ms\n.*8 choices: [\d.]+ ms/);
  t.regex(check.out.join('\n'), /an engine with this package alone takes [1-9]\d+ MiB$/m);
  t.is((await run({}, 'models check nobody')).status, 1);
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'broken', 'r1'), { recursive: true });
  writeFileSync(join(folder, 'broken', 'r1', 'model.json'), '{');
  const broken = await run({ UMPIRE_MODELS_DIR: folder }, 'models check');
  t.is(broken.status, 1);
  t.regex(broken.out.join('\n'), /^broken@r1: broken\n {2}\S/);
});

/** What another program does to a key's record. */
const setLimits: Readonly<Record<string, (hash: string, limits: string) => unknown>> = {
  sqlite(hash, limits) {
    const database = new DatabaseSync(join(embedded.folder, 'umpire.db'));
    database.prepare('UPDATE keys SET limits = ? WHERE hash = ?').run(limits, hash);
    database.close();
  },
  redis: (hash, limits) => redis.command('HSET', `umpire:key:${hash}`, 'limits', limits),
};
for (const [name, { env, stores }] of Object.entries(places)) {
  const stateOf = async (key: string) => stores.keys.find(hashKey(key), budget());

  test.serial(`${name}: a key that cannot be read is named, ended all the same, and stops nothing else`, async (t) => {
    const [owner, other] = [newOwner(), newOwner()];
    const good = await run(env, `keys create --owner ${owner}`);
    const bad = await run(env, `keys create --owner ${other}`);
    await setLimits[name]?.(hashKey(bad.out.at(-1) ?? ''), 'oops');
    const list = await run(env, 'keys list');
    t.is(list.status, 1);
    t.true(list.out.some((line) => line.startsWith(idIn(good.out)) && line.includes(' live ')));
    t.true(list.out.some((line) => line.startsWith(idIn(bad.out)) && line.endsWith(' not readable')));
    t.regex(list.err.join(), /1 key could not be read/);
    t.is((await run(env, `keys list --owner ${owner}`)).status, 0);
    const json = await run(env, `keys list --json --owner ${other}`);
    t.is(json.status, 1);
    t.like(JSON.parse(json.out.join('')), [{ key_id: idIn(bad.out), owner: other, readable: false }]);
    const exported = await run(env, 'keys export');
    t.is(exported.status, 1);
    t.true(exported.out.some((line) => line.includes(owner)) && !exported.out.some((line) => line.includes(other)));
    t.regex(exported.err.join('\n'), new RegExp(`${idIn(bad.out)}: not readable, left out`));
    const file = join(temporaryFolder(), 'backup');
    t.is((await run(env, `backup ${file}`)).status, 1);
    t.true(readFileSync(file, 'utf8').includes(owner) && !readFileSync(file, 'utf8').includes(other));

    t.is((await run(env, `keys rotate ${idIn(good.out)}`)).status, 0);
    t.is((await run(env, `keys revoke ${idIn(good.out)}`)).status, 0);
    t.regex((await run(env, `keys rotate ${idIn(bad.out)}`)).err.join(), /is not readable/);
    t.is((await run(env, `keys revoke ${idIn(bad.out)}`)).status, 0);
    t.is((await run(env, 'keys revoke -', `${bad.out.at(-1)}\n`)).status, 0);
    await setLimits[name]?.(hashKey(bad.out.at(-1) ?? ''), '{}');
    t.is((await stateOf(bad.out.at(-1) ?? ''))?.endsAt, 0);
  });

  test.serial(`${name}: nothing that a caller chose acts on the terminal`, async (t) => {
    const owner = newOwner();
    const version = '1\u001b]0;pwned\u0007\r\u001b[2Kinnocent\u001b[8m\u202e\u0085\u2028';
    const choices = ['a\u001b[2J', 'b\u009b31m\u{e0041}'];
    const created = { ...record('a', choices), version, createdAt: '\u001b[31m' };
    await stores.catalogs.create(owner, created, UNBOUNDED, budget());
    for (const args of ['list', 'list --json', 'show --catalog a', 'show --catalog a --json', 'export']) {
      const { out, err } = await run(env, `catalogs ${args} --owner ${owner}`);
      t.true(out.join('').includes('innocent') || args === 'show --catalog a', args);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not occur
      t.notRegex([...out, ...err].join(''), /[\u0000-\u001f\u007f-\u009f\u2028\u202e\u{e0041}]/u, args);
    }
    const [line = ''] = (await run(env, `catalogs export --owner ${owner}`)).out;
    t.like(JSON.parse(line), { version, choices, created_at: '\u001b[31m' });
    await stores.catalogs.delete(owner, 'a', budget());
  });
}
