/**
 * The guides' commands run as they are printed, for somebody who has cloned the repository and has
 * nothing of it on PATH.
 */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { newUserEnv } from './support/new-user.ts';
import { blocksOf, pagesOf, ROOT } from './support/pages.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

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
