/**
 * The pages of help, bad arguments, what commands say of the store that they use, and the command as a process.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { usageOf } from '../../src/cli/help.ts';
import { COMMANDS } from '../../src/cli/run.ts';
import { describeStore, parseStoreSettings } from '../../src/stores/settings.ts';
import { newUserEnv } from '../support/new-user.ts';
import { outputOf } from '../support/output.ts';
import { goByOwnTime } from '../support/own-time.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../support/terminal.ts';

goByOwnTime();

const umpire = (...args: string[]) => runUmpire(args);

test('without arguments, or asked for help, all commands with a line each', async (t) => {
  const expected = await umpire('--help');
  for (const args of [[], ['help'], ['-h']]) t.deepEqual(await umpire(...args), expected);
  t.is(expected.status, 0);
  for (const { name, summary } of COMMANDS) {
    t.true(expected.out.includes(`\n  ${name} `), name);
    t.false(/[.\n]$/.test(summary), name);
  }
  for (const line of linesOf(expected.out)) t.true(line.length <= 80, line);
});

for (const command of COMMANDS) {
  const { name, options, environment } = command;
  test(`umpire ${name} --help is a page of its own`, async (t) => {
    const { status, out, err } = await umpire(...name.split(' '), '--help');
    t.deepEqual([status, err], [0, '']);
    t.deepEqual(await umpire('help', ...name.split(' ')), { status, out, err });
    t.true(out.startsWith(`usage: umpire ${name}`));
    for (const line of linesOf(out)) t.true(line.length <= 80, line);
    // Every option is on the page and in the usage, and the usage has no others.
    const used = [...usageOf(command).matchAll(/--([a-z-]+)/g)].map(([, option]) => option ?? '');
    t.deepEqual([...new Set(used)].toSorted(), Object.keys(options).toSorted());
    for (const [option, { otherwise }] of Object.entries(options)) {
      t.regex(out, new RegExp(`^ {2}--${option}\\b`, 'm'));
      if (otherwise !== undefined) t.true(out.replaceAll(/\s+/g, ' ').includes(`default: ${otherwise}`), option);
    }
    for (const variable of environment) t.true(out.includes(variable), variable);
    t.regex(out, /\nExit status\n {2}0 {1,2}done\n {2}1 .*\n(.*\n)*? {2}2 {1,2}bad arguments\n$/);
    // A page says what holds, and does nothing.
    t.notRegex(out, /undefined/);
  });
}

test('help for what is no command is an error, a group shows its commands', async (t) => {
  t.is((await umpire('help', 'nonsense')).status, 2);
  const group = await umpire('keys', '--help');
  t.is(group.status, 0);
  t.regex(group.out, /^ {2}umpire keys rotate KEY_ID/m);
});

test('the version is the package’s', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  for (const args of [['--version'], ['version']]) {
    const { status, out } = await umpire(...args);
    t.is(status, 0);
    t.is(out, `umpire ${version}, Node ${process.versions.node}\n`);
  }
});

for (const [args, problem] of [
  ['keys create', /--owner NAME is needed/],
  ['keys create --owner a/b', /an owner's name/],
  ['keys create --owner {x}', /an owner's name/],
  ['keys create --owner a --rate fast', /--rate: 'fast' is not a rate/],
  ['keys create --owner a --quota 0', /--quota/],
  ['keys create --owner a --colour red', /--colour/],
  ['keys create --owner a surplus', /unexpected argument 'surplus'/],
  ['keys rotate', /KEY_ID is missing/],
  ['keys rotate key_1 --grace soon', /'soon' is not a duration/],
  ['catalogs list', /--owner NAME is needed/],
  ['catalogs delete --owner a', /delete: ID is missing/],
  ['catalogs delete --owner a ..', /cannot be the id/],
  ['keys', /'keys' is not a command by itself; these are:\n {2}umpire keys create/],
  ['conformance', /--url URL is needed/],
  ['keys create --owner a --label ', /--label: must be one line/],
  ['kesy create', /there is no command 'kesy'; 'umpire help' lists them/],
  ['keys destroy', /there is no command 'keys destroy'/],
  ['keys creat', /did you mean 'umpire keys create'/],
  ['catalog', /there is no command 'catalog'/],
  ['backup', /FILE is missing/],
  ['restore', /FILE is missing/],
  ['keys revoke', /KEY_ID is missing/],
  ['models pack', /EXPORT and MODEL@REVISION are missing/],
  ['models pack x', /pack: MODEL@REVISION is missing/],
  ['models add', /MODEL@REVISION is missing/],
  ['evaluate', /EXAMPLES is missing/],
  ['catalogs replace --owner a', /FILE is missing/],
  ['bridge', /--url is missing/],
  ['bridge --url localhost:8080', /--url localhost:8080: must be such as http:/],
  ['bridge --url http://a/path', /must be such as http:/],
  ['bridge --url http://a?key=b', /must be such as http:/],
  ['bridge --url http://a --port 65536', /--port: must be a whole number from 0 to 65535/],
  ['bridge --url http://a --alias jev-latest', /--alias jev-latest: must be such as/],
  ['bridge --url http://a --keys some', /--keys: must be pass, require or drop/],
  ['mcp', /--url is missing/],
  ['mcp --url http://a --port x', /--port: must be a whole number from 0 to 65535/],
  ['models pack x mine', /'mine' is not MODEL@REVISION/],
  ['models pack x mine@r1 --pooling max', /--pooling: 'max' is none of/],
  ['models pack x mine@r1 --choices 2.5', /--choices: '2.5' is not a whole number/],
  ['models pack x mine@r1 --temperature hot', /--temperature: 'hot' is not a number/],
  ['catalogs import --owner a --from wit x', /--from: 'wit' is none of luis, clu, dialogflow, rasa, csv/],
  ['catalogs import --owner a --from clu x', /--from needs --catalog ID, --out FILE/],
  ['catalogs import --owner a x y', /unexpected argument 'y'/],
  ['catalogs describe --owner a --catalog c', /FILE or --remove is needed/],
  ['learn --owner a --catalog c', /either a file, --refresh or --forget is needed/],
  ['learn --owner a --catalog c --forget x', /either a file, --refresh or --forget is needed/],
  ['learn --owner a x', /--catalog ID is needed/],
  ['teach --owner a --catalog c --teacher m', /TEXTS is missing/],
  ['teach --owner a --catalog c x', /--catalog ID and --teacher MODEL are needed/],
  ['teach --owner a --catalog c --teacher m --budget 0 x', /--budget: must be a whole number from 1 to 10000/],
  ['teach --owner a --catalog c --teacher m --sure 1 x', /--sure: must be between 0 and 1/],
  ['review', /FILE is missing/],
  ['review x', /--plain reads line by line/],
  ['evaluate --url http://a --owner a --catalog c x', /--catalog with --owner or --url, or --model and --choices/],
  ['ask', /TEXT is missing/],
  ['ask text a b', /--question TEXT is needed/],
  ['ask --question q text', /either choices or --catalog ID are needed/],
  ['ask --question q --catalog c text a', /either choices or --catalog ID are needed/],
  ['ask --question q --url http://a:b@c text a b', /--url: must not hold a user/],
  ['decide', /--model MODEL is needed/],
  ['decide --url ftp://a --model m --catalog c', /--url: must be http/],
  ['decide --url http://a:b@c --model m --catalog c', /--url: must not hold a user/],
  ['decide --url http://a --model m', /either --catalog or --choices is needed/],
  ['decide --url http://a --model m --catalog c --choices f', /either --catalog or --choices is needed/],
  ['decide --url http://a --model m --catalog c --resume', /--resume needs the file of --out/],
  ['decide --url http://a --model m --catalog c --at-once 0', /--at-once: must be a whole number from 1 to 512/],
  ['decide --url http://a --model m --catalog c --format xml', /--format: 'xml' is neither json nor csv/],
  ['decide --url http://a --model m --catalog c --key not\na-key', /this is not a key: it must be what/],
] as const) {
  test(args.trim(), async (t) => {
    const { status, err, out } = await runUmpire(args.split(' '));
    t.is(status, 2);
    t.regex(err, problem);
    t.is(out, '');
    // What looks like a key is not repeated.
    t.false(err.includes('a-key'));
  });
}

const folder = temporaryFolder();

const umpireIn = (data: string, ...args: string[]) => runUmpire(args, { env: { UMPIRE_DATA_DIR: data } });

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
    const { status, out, err } = await umpireIn(data, ...args);
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
  const firstSaid = async (...args: string[]) => linesOf((await umpireIn(data, ...args)).err)[0];
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

test.serial('a folder that cannot be made is refused at once', async (t) => {
  const started = performance.now();
  for (const data of ['/proc/nope', '/proc/nope/deeper', join(labels, 'data')]) {
    const { status, err } = await umpireIn(data, 'keys', 'create', '--owner', 'acme');
    t.is(status, 1);
    t.regex(err, /cannot open .*umpire\.db: E(NOENT|ACCES|NOTDIR|PERM)/);
  }
  t.true(performance.now() - started < 5_000);
});

const launcher = fileURLToPath(new URL('../../bin/umpire', import.meta.url));
test('it runs from anywhere, through a link, with the Node that is pinned', async (t) => {
  const link = join(folder, 'umpire');
  symlinkSync(launcher, link);
  const { stdout } = await promisify(execFile)(link, ['--version'], { cwd: folder, env: newUserEnv() });
  t.regex(stdout, /^umpire \d+\.\d+\.\d+, Node 2[4-9]\./);
});

for (const args of ['--help', 'conformance --list', 'models list', 'keys']) {
  test(`umpire ${args}: a reader that closes at once is no error`, async (t) => {
    // Whatever the race: neither a stack trace nor a crash.
    const child = spawn(launcher, args.split(' '), {
      cwd: folder,
      env: newUserEnv(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    if (args === 'keys') child.stderr.destroy();
    const err = outputOf(child.stderr);
    await once(child, 'exit');
    t.is(child.exitCode, args === 'keys' ? 2 : 0);
    t.is(err(), '');
  });
}

test('what was to be done is done, though nobody reads of it', async (t) => {
  const env = newUserEnv({ UMPIRE_DATA_DIR: join(folder, 'data') });
  const child = spawn(launcher, ['keys', 'create', '--owner', 'acme'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.destroy();
  await once(child, 'exit');
  t.is(child.exitCode, 0);
  const { stdout } = await promisify(execFile)(launcher, ['keys', 'list', '--json'], { env });
  t.is(JSON.parse(stdout).length, 1);
});
