/** `umpire backup` and `umpire restore`, on both stores and from one to the other, while a store is in use. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import { UNBOUNDED } from '../../src/stores/catalog-store.ts';
import type { Stores } from '../../src/stores/stores.ts';
import { record } from '../stores/catalog-store-suite.ts';
import { keyOf } from '../stores/key-store-suite.ts';
import { openStores } from '../support/open-stores.ts';
import { startRedis } from '../support/redis.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../support/terminal.ts';

const folder = temporaryFolder();
const servers = [await startRedis(), await startRedis()] as const;
test.after.always(async () => {
  for (const server of servers) await server.stop();
});

const umpire = (env: Record<string, string>, ...args: string[]) => runUmpire(args, { env });

const embedded = (name: string) => ({ UMPIRE_DATA_DIR: join(folder, name) });

const KEYS = [
  keyOf('acme', { label: 'prod', limits: { quota: 7 }, lastUsedAt: 1_790_000_000_000 }),
  keyOf('acme', { endsAt: 1_790_000_000_000, endedBy: 'revocation' }),
  keyOf('nobody-with-catalogs'),
];
const CATALOGS = [
  ['acme', record('a', ['__proto__', 'é\n', '🟢'])],
  ['acme', { ...record('b'), calibrations: { 'minilm-l6@r1': 1.5 } }],
  ['without-keys', record('a')],
] as const;

async function fill(stores: Stores): Promise<void> {
  for (const key of KEYS) await stores.keys.add(key, budget());
  for (const [owner, each] of CATALOGS) await stores.catalogs.create(owner, each, UNBOUNDED, budget());
}

async function content(stores: Stores) {
  const { records: found } = await stores.keys.list(budget(5_000));
  const kept: unknown[] = [];
  for (const owner of await stores.catalogs.owners(budget(5_000))) {
    for (const id of await stores.catalogs.list(owner, budget())) {
      kept.push([owner, (await stores.catalogs.read(owner, id, budget()))?.record]);
    }
  }
  return { keys: found, catalogs: kept };
}

const PLACES = { sqlite: embedded('one'), redis: { REDIS_URL: servers[0].url } };
for (const [name, env] of Object.entries(PLACES)) {
  test.serial(`${name}: what a backup holds is what a store of either kind has after a restore`, async (t) => {
    const stores = await openStores(env);
    t.teardown(() => stores.close());
    await fill(stores);
    const file = join(folder, `${name}.backup`);
    const made = await umpire(env, 'backup', file);
    t.is(made.status, 0, made.err);
    t.is(made.out, `3 keys and 3 catalogs are in ${file}\n`);
    t.is(statSync(file).mode & 0o777, 0o600);
    const expected = await content(stores);
    t.is(expected.keys.length, 3);
    const byId = (a: { keyId: string }, b: { keyId: string }): number => (a.keyId < b.keyId ? -1 : 1);
    t.deepEqual(expected.keys.toSorted(byId), KEYS.toSorted(byId));
    for (const target of [embedded(`${name}-restored`), { REDIS_URL: servers[1].url }]) {
      if ('REDIS_URL' in target) await servers[1].command('FLUSHALL');
      const { status, out, err } = await umpire(target, 'restore', file);
      t.is(status, 0, err);
      t.is(linesOf(out)[0], '3 keys and 3 catalogs added');
      const restored = await openStores(target);
      t.deepEqual(await content(restored), expected);
      // Again: everything is there and stays.
      const again = linesOf((await umpire(target, 'restore', file)).out);
      t.is(again[1], '3 keys and 3 catalogs existed and stay as they are');
      await restored.close();
    }
    // In parts: keys by themselves, and the catalogs of each owner.
    const target = embedded(`${name}-imported`);
    for (const [args, count, done] of [
      ['keys export', 3, 'added'],
      ['catalogs export --owner acme', 2, 'created'],
      ['catalogs export --owner without-keys', 1, 'created'],
    ] as const) {
      const { out: input } = await umpire(env, ...args.split(' '));
      const take = () => runUmpire(args.replace('export', 'import').split(' '), { env: target, input });
      t.is((await take()).out, `${count} ${done}, 0 existed\n`);
      t.is((await take()).out, `0 ${done}, ${count} existed\n`);
    }
    const imported = await openStores(target);
    t.deepEqual(await content(imported), expected);
    await imported.close();
  });
}

test.serial('a restore overwrites nothing', async (t) => {
  const env = embedded('other');
  const stores = await openStores(env);
  await stores.catalogs.create('acme', record('a', ['mine', 'stays']), UNBOUNDED, budget());
  await umpire(env, 'restore', join(folder, 'sqlite.backup'));
  t.deepEqual((await stores.catalogs.read('acme', 'a', budget()))?.record.choices, ['mine', 'stays']);
  await stores.close();
});

test.serial('of one owner alone, written or restored', async (t) => {
  const file = join(folder, 'acme.backup');
  const made = await umpire(PLACES.sqlite, 'backup', '--owner', 'acme', file);
  t.is(made.out, `2 keys and 2 catalogs are in ${file}\n`);
  const whole = join(folder, 'sqlite.backup');
  for (const [name, args] of Object.entries({ written: [file], restored: ['--owner', 'acme', whole] })) {
    const { out } = await umpire(embedded(name), 'restore', ...args);
    t.is(linesOf(out)[0], '2 keys and 2 catalogs added');
  }
});

const TWO = { id: 'x', model: 'm', choices: ['a', 'b'] };
/** A key's line, and lines of catalogs, that no import takes. */
const KEY = { hash: 'f'.repeat(64), key_id: 'key_f', owner: 'acme', limits: '{}', created_at: 'x' };
const BAD_LINES: readonly (readonly [kind: 'keys' | 'catalogs', line: string | object, problem: RegExp])[] = [
  ['keys', '{', /line 2: is not a JSON object/],
  ['keys', {}, /line 2: is not a key/],
  ['keys', { ...KEY, hash: `Z${KEY.hash.slice(1)}` }, /line 2: is not a key/],
  ['keys', { ...KEY, owner: 'a/b' }, /line 2: is not a key/],
  ['keys', { kind: 'catalog', owner: 'acme', ...TWO }, /line 2: is not a key/],
  ['catalogs', { kind: 'key', ...KEY }, /line 2: is not a catalog/],
  ['catalogs', '{', /line 2: is not a JSON object/],
  ['catalogs', 'null', /line 2: is not a JSON object/],
  ['catalogs', {}, /line 2: id and model/],
  ['catalogs', { ...TWO, id: '../x' }, /line 2: id must be/],
  ['catalogs', { ...TWO, choices: ['a', 'a'] }, /line 2: choices\[1\] repeats/],
  ['catalogs', { ...TWO, choices: ['a', 1] }, /line 2: choices must be a list of texts/],
  ['catalogs', { ...TWO, version: 1 }, /line 2: version must be a text/],
  ['catalogs', { ...TWO, visibility: 'public' }, /line 2: visibility/],
  ['catalogs', { ...TWO, examples: 7 }, /line 2: examples must be JSON lines in a text/],
  ['catalogs', { ...TWO, examples: 'nonsense' }, /line 2: examples must be JSON lines/],
  ['catalogs', { ...TWO, examples: '{}\n' }, /examples, line 1: input, instruction, label must be/],
  ['catalogs', { ...TWO, examples: '{"input":"a","instruction":"b","label":"c"}\n' }, /the label "c" is not one/],
  ['catalogs', { ...TWO, additions: { learned: { bias: [1] } } }, /the learned state is broken/],
  ['catalogs', { ...TWO, additions: { descriptions: { gone: 'x' } } }, /descriptions are not of these choices/],
];

test.serial('an import with one bad line imports nothing', async (t) => {
  const target = embedded('bad-lines');
  for (const [kind, line, problem] of BAD_LINES) {
    // The good line is as earlier versions wrote it.
    const lines = [kind === 'keys' ? KEY : TWO, line].map((each) =>
      typeof each === 'string' ? each : JSON.stringify(each),
    );
    const args = kind === 'keys' ? ['keys', 'import'] : ['catalogs', 'import', '--owner', 'acme'];
    const { status, err } = await runUmpire(args, { env: target, input: lines.join('\n') });
    t.is(status, 1);
    t.regex(err, problem);
    t.regex(err, /nothing was imported/);
    t.false(existsSync(target.UMPIRE_DATA_DIR));
  }
  const input = JSON.stringify(KEY);
  t.is((await runUmpire(['keys', 'import'], { env: target, input })).out, '1 added, 0 existed\n');
});

test.serial('an import names what is there already, and models that are not', async (t) => {
  const env = embedded('named');
  const take = () => runUmpire(['catalogs', 'import', '--owner', 'acme'], { env, input: JSON.stringify(TWO) });
  t.regex((await take()).err, /^x: model 'm' is not in .*models$/m);
  t.regex((await take()).err, /^x: exists, left as it is$/m);
});

test.serial('a file that is not a whole backup changes nothing', async (t) => {
  const whole = readFileSync(join(folder, 'sqlite.backup'), 'utf8');
  const lines = whole.trimEnd().split('\n');
  const target = embedded('untouched');
  for (const [text, problem] of [
    ['', /is not whole/],
    [lines.slice(0, -1).join('\n'), /is not whole/],
    [whole.slice(0, whole.length / 2), /line \d+: is not a JSON object|is not whole/],
    [lines.toSpliced(1, 1).join('\n'), /lines are missing/],
    [lines.slice(1).join('\n'), /line 1: the file is not a backup/],
    [whole.replace('"format":1', '"format":2'), /another version/],
    [whole.replace('"kind":"key"', '"kind":"kye"'), /line 2: is neither/],
    [whole.replace('"owner":"without-keys"', '"owner":"a/b"'), /owner must be/],
    [`${whole}{}`, /after the end/],
    ['no json', /line 1: is not a JSON object/],
  ] as const) {
    const file = join(folder, 'broken');
    writeFileSync(file, text);
    const { status, err } = await umpire(target, 'restore', file);
    t.is(status, 1);
    t.regex(err, problem);
    t.false(existsSync(target.UMPIRE_DATA_DIR));
  }
});

test.serial('a backup that fails leaves the last one as it was', async (t) => {
  const file = join(folder, 'sqlite.backup');
  const before = readFileSync(file, 'utf8');
  t.is((await umpire({ REDIS_URL: 'redis://127.0.0.1:1' }, 'backup', file)).status, 1);
  t.is(readFileSync(file, 'utf8'), before);
  t.is((await umpire(PLACES.sqlite, 'backup', join(folder, 'no-such-folder', 'file'))).status, 1);
  t.deepEqual(
    readdirSync(folder).filter((name) => name.includes('.part')),
    [],
  );
});

test.serial('a catalog that cannot be read is named, the rest is kept', async (t) => {
  await servers[0].command('HSET', 'umpire:{acme}:catalog:a', 'choices', 'nonsense');
  const file = join(folder, 'partly.backup');
  const { status, err } = await umpire(PLACES.redis, 'backup', file);
  t.is(status, 1);
  t.regex(err, /a of acme: not readable, left out/);
  const { out } = await umpire(embedded('partly'), 'restore', file);
  t.is(linesOf(out)[0], '3 keys and 2 catalogs added');
});

test.serial('what a backup holds can be restored: a record that could not is left out and named', async (t) => {
  const [server] = servers;
  await server.command('HSET', 'umpire:{acme}:catalog:a', 'choices', '["x","y"]', 'examples', 'no JSON lines');
  await server.command('SET', 'umpire:{strange}:catalogs', 'text');
  const hash = ['hash', 'owner', 'acme', 'key_id', 'key_x', 'limits', '{}', 'created_at', 'x'].slice(1);
  await server.command('HSET', 'umpire:key:nonsense', ...hash);
  await server.command('SET', `umpire:key:${'a'.repeat(64)}`, 'text');
  t.teardown(() =>
    server.command('DEL', 'umpire:{strange}:catalogs', 'umpire:key:nonsense', `umpire:key:${'a'.repeat(64)}`),
  );
  const file = join(folder, 'odd.backup');
  const { status, err } = await umpire(PLACES.redis, 'backup', file);
  t.is(status, 1);
  for (const named of [
    /a of acme: kept examples not readable, left out/,
    /the catalogs of strange: not readable, left out/,
    /key_x: not readable, left out/,
    /with hash a{64}: not readable, left out/,
    /what could not be read is not in it: 4 records/,
  ])
    t.regex(err, named);
  const { out } = await umpire(embedded('odd'), 'restore', file);
  t.is(linesOf(out)[0], '3 keys and 3 catalogs added');
});

test.serial('a key whose id is taken keeps none of the others from being restored', async (t) => {
  const key = (hash: string) => ({
    kind: 'key',
    hash: hash.repeat(64),
    key_id: 'key_1',
    owner: 'acme',
    limits: '{}',
    created_at: 'x',
  });
  const lines = [
    { kind: 'umpire-backup', format: 1 },
    ...['a', 'b'].map(key),
    { ...key('c'), key_id: 'key_2' },
    { kind: 'end', keys: 3, catalogs: 0 },
  ];
  const file = join(folder, 'twice.backup');
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { status, out } = await umpire(embedded('twice'), 'restore', file);
  t.is(status, 0);
  t.deepEqual(linesOf(out), ['2 keys and 0 catalogs added', '1 key and 0 catalogs existed and stay as they are']);
});
