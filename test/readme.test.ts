/**
 * The README is true: every command runs, its answer is the real one. So are its picture, the table of errors, and the
 * commands of the guides, for somebody who has cloned the repository and has nothing of it on PATH.
 */
import { execFile, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { ERROR_TABLE } from '../src/domain/errors.ts';
import { listPackages } from '../src/engine/package-tools/check.ts';
import { cachedDataDir } from './support/models-dir.ts';
import { newUserEnv } from './support/new-user.ts';
import { blocksOf, pagesOf, ROOT, textOf } from './support/pages.ts';
import { freePort, until } from './support/redis.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const readme = textOf('README.md');
const commands = blocksOf('README.md');

test('every command runs, in the order of the page, on what the quick start serves', async (t) => {
  // Models are loaded and learned from by five commands, beside all other tests.
  t.timeout(600_000);
  const [quickstart, verify, ...others] = commands;
  t.is(quickstart, 'npm run quickstart');
  // This test is a part of it: that it exists and is what CI runs is all that can be shown from inside.
  t.is(verify, 'npm run verify');

  const port = await freePort();
  const env = newUserEnv({
    PORT: String(port),
    UMPIRE_DATA_DIR: cachedDataDir(),
    UMPIRE_ENGINES: '1',
    UMPIRE_DRAIN_DELAY: '0',
  });
  const server = spawn('npm', ['run', 'quickstart'], { cwd: ROOT, env, stdio: 'ignore', detached: true });
  const exited = new Promise((resolve) => server.once('exit', resolve));
  try {
    // Its models are loaded beside the longest of the other tests.
    await until(async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).status === 200, 240_000, 100);
    // One shell for all, as a reader has one; a mark between the commands tells their outputs apart.
    const script = others
      .map((command) => command.replaceAll('localhost:8080', `127.0.0.1:${port}`))
      .join('\nprintf "\\n=====\\n"\n');
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: ROOT, env });
    const outputs = stdout.split('\n=====\n');
    t.is(outputs.length, others.length);
    const [asked, decision, , created, withCatalog, learned = '', conformance] = outputs.map((output) => output.trim());
    t.is(asked, blocksOf('README.md', 'text')[0]);
    const shown = JSON.parse(blocksOf('README.md', 'json')[0] ?? '');
    t.deepEqual({ ...JSON.parse(decision ?? ''), id: shown.id }, shown);
    t.like(JSON.parse(created ?? ''), { id: 'support-teams', version: '1', visibility: 'private' });
    t.is(JSON.parse(withCatalog ?? '').output.choice, 'shipping: parcels and delivery');
    // The figures are the real ones.
    for (const [, figure = ''] of readme.matchAll(/^\| (?:by the names|learned from).*?\| ([\d.]+) %/gm))
      t.true(learned.includes(`right answers: ${figure} %`), figure);
    // What is learned differs in the last digits from one kind of processor to another, and thresholds by more.
    const said = /([\d.]+) % of the messages, at a confidence of about (\.\d+)/.exec(readme) ?? [];
    const found = /^90\.0 % +([\d.]+) +([\d.]+) %/m.exec(learned) ?? [];
    t.true(Math.abs(Number(found[1]) - Number(said[2])) <= 0.01, `${said[2]}, found ${found[1]}`);
    t.true(Math.abs(Number(found[2]) - Number(said[1])) <= 2, `${said[1]} %, found ${found[2]} %`);
    const answers = learned.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
    t.is(answers.length, 60);
    t.true(answers.every(({ learned: digest }) => /^[0-9a-f]{16}$/.test(digest)));
    t.is(answers.filter(({ label, choice }) => label === choice).length, 50);
    t.regex(conformance ?? '', /\d{3} passed, 0 failed, \d+ skipped$/);
  } finally {
    process.kill(-(server.pid as number), 'SIGTERM');
    await exited;
  }
});

test('the picture has the figures of the page that names their sources', async (t) => {
  const page = textOf('bench/results/2026-11-27-comparison.md');
  const picture = textOf('docs/comparison.svg');
  const figures = [...page.matchAll(/^\|[^|]*\| (\.\d+) \| (\.\d+) \|/gm)].flatMap(([, ...pair]) => pair);
  t.is(figures.length, 14);
  t.deepEqual(
    [...picture.matchAll(/>(\d+) %</g)].map(([, figure]) => figure),
    figures.map((figure) => (100 * Number(figure)).toFixed()),
  );
});

test('each model of the table says its languages', async (t) => {
  const named = [...readme.matchAll(/^\| \[([\w-]+)\]\(models\/[\w-]+\/(r\d+)\//gm)].map(
    ([, id, revision]) => `${id}@${revision}`,
  );
  const shipped = await listPackages(`${ROOT}models`);
  t.deepEqual(shipped.map(({ id, revision }) => `${id}@${revision}`).toSorted(), named.toSorted());
  for (const { id, languages } of shipped) t.true(languages.includes('en'), id);
});

test('CI runs what README and CONTRIBUTING say', async (t) => {
  for (const file of ['README.md', 'CONTRIBUTING.md', '.ci/run']) t.regex(textOf(file), /npm run verify$/m);
});

test('the table of errors has every code that REST can send, under its status and type', async (t) => {
  // Those of the other protocols, and the one that nobody is there to read.
  const elsewhere = new Set(['invalid_message', 'unimplemented', 'service_not_found', 'canceled']);
  const table = textOf('docs/rest.md')
    .split('\n')
    .filter((line) => /^\| \d{3}(, \d{3})* \|/.test(line));
  for (const [reason, { http, type }] of Object.entries(ERROR_TABLE)) {
    const code = reason.toLowerCase();
    if (elsewhere.has(code)) continue;
    t.true(
      table.some(
        (line) =>
          line.includes(`\`${code}\``) &&
          line.includes(`\`${type}\``) &&
          line.slice(0, line.indexOf('|', 2)).includes(String(http)),
      ),
      `${code} should stand in a row of ${http} ${type}`,
    );
  }
});

const pages = pagesOf('README.md', 'CONTRIBUTING.md', 'deploy/README.md', 'docs/');

/** Programs that only the scripts of npm find, at the beginning of a command. */
const HIDDEN = /^ *(?:[A-Z_]+=\S+ )*(?:[A-Z_]+=\$\()?(umpire|node|ava|buf|tsc|biome) .*$/gm;

test('no command begins with a program that a new user does not have', (t) => {
  let blocks = 0;
  for (const { name, text } of pages) {
    for (const block of [...text.matchAll(/^```(?:sh)?\n([\s\S]*?)^```$/gm), ...text.matchAll(/^ {4,}(\S.*)$/gm)]) {
      blocks += 1;
      t.deepEqual(
        [...(block[1] ?? '').matchAll(HIDDEN)].map(([line]) => line),
        [],
        name,
      );
    }
  }
  t.true(blocks > 25, String(blocks));
});

const folder = temporaryFolder();

/** Runs blocks one after the other in one shell, with the files that they write in a folder of this test's. */
async function runBlocks(blocks: readonly string[], env: Record<string, string>): Promise<string> {
  const script = blocks.join('\n').replaceAll(/(?<![\w/])([a-z-]+\.(jsonl|binpb))/g, `${folder}/$1`);
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: ROOT,
    env: newUserEnv(env),
  });
  return stdout;
}

test.serial('backup.md: the embedded store is backed up, restored and moved', async (t) => {
  const [backup = '', restore = '', exporting = '', importing = ''] = blocksOf('docs/backup.md');
  const data = { UMPIRE_DATA_DIR: join(folder, 'data') };
  await runBlocks(['bin/umpire keys create --owner example'], data);
  t.regex(await runBlocks([backup], data), /^1 key and 0 catalogs are in /);
  t.regex(await runBlocks([restore], { UMPIRE_DATA_DIR: join(folder, 'restored') }), /^1 key and 0 catalogs added/);
  await runBlocks([exporting], data);
  t.is(
    await runBlocks([importing], { UMPIRE_DATA_DIR: join(folder, 'moved') }),
    '1 added, 0 existed\n0 created, 0 existed\n',
  );
});

test.serial('running.md: keys are made and listed', async (t) => {
  const [keys = ''] = blocksOf('docs/running.md').filter((block) => block.includes('keys create'));
  t.regex(await runBlocks([keys], { UMPIRE_DATA_DIR: join(folder, 'keys') }), /rate 50\/s, burst 100/);
});

test.serial('grpc.md: the protos are taken and compared', async (t) => {
  const blocks = blocksOf('docs/grpc.md').filter((block) => /buf (build|breaking)/.test(block));
  t.is(blocks.length, 2);
  await runBlocks(blocks, {});
  t.true(readdirSync(folder).includes('umpire.binpb'));
});
